//! What HIP reports about a pointer.

use std::ffi::{c_int, c_void};

use hip_sys::{hipDeviceptr_t, hipError_t, hipMemoryType, hipPointerAttribute_t};

use super::registry::{self, Kind};
use crate::error::{entry, store};

pub(crate) unsafe extern "C" fn pointer_get_attributes(
    out: *mut hipPointerAttribute_t,
    ptr: *const c_void,
) -> hipError_t {
    entry("hipPointerGetAttributes", || {
        if out.is_null() || ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let here = ptr.cast_mut();
        let mut answer = hipPointerAttribute_t::default();
        match registry::find(ptr as usize) {
            // HIP 6 knows no error for a pointer it does not know (hipamd/src/hip_memory.cpp,
            // `hipPointerGetAttributes`).
            None => {
                answer.type_ = hipMemoryType::hipMemoryTypeUnregistered;
                answer.device = hip_sys::hipInvalidDeviceId;
            }
            // OpenCL's memory reaches HIP as one arena without flags: always "device", even where it lives on the
            // host, of device 0, with no flags (rocclr/device/rocm/rocdevice.cpp, `GetArenaMemObj`).
            Some(allocation) if matches!(allocation.kind, Kind::ForeignVram | Kind::ForeignHost) => {
                answer.type_ = hipMemoryType::hipMemoryTypeDevice;
                answer.devicePointer = here;
            }
            Some(allocation) => {
                answer.device = allocation.device.ordinal as c_int;
                answer.devicePointer = here;
                answer.allocationFlags = allocation.flags;
                answer.type_ = match allocation.kind {
                    kind if kind.is_device() => hipMemoryType::hipMemoryTypeDevice,
                    Kind::Managed => hipMemoryType::hipMemoryTypeManaged,
                    _ => hipMemoryType::hipMemoryTypeHost,
                };
                answer.isManaged = c_int::from(allocation.kind == Kind::Managed);
                if !allocation.kind.is_device() {
                    answer.hostPointer = here;
                }
            }
        }
        // SAFETY: not null; room for the structure by the C caller's promise.
        unsafe { store(out, answer) }
    })
}

pub(crate) unsafe extern "C" fn mem_get_address_range(
    base: *mut hipDeviceptr_t,
    bytes: *mut usize,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    entry("hipMemGetAddressRange", || {
        if base.is_null() || bytes.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let allocation = registry::find(ptr as usize).ok_or(hipError_t::hipErrorNotFound)?;
        let (start, length) = match allocation.kind {
            // The arena's own extent, which says nothing about the pointer (rocclr/platform/memory.hpp, `ArenaMemory`).
            Kind::ForeignVram | Kind::ForeignHost => (0x100, usize::MAX),
            // The device's own address of it, which ROCm does not tell.
            Kind::Registered => (0, allocation.bytes),
            _ => (allocation.base, allocation.bytes),
        };
        // SAFETY: neither is null; room for a pointer and a size by the C caller's promise.
        unsafe {
            store(base, start as hipDeviceptr_t)?;
            store(bytes, length)
        }
    })
}

pub(crate) unsafe extern "C" fn mem_ptr_get_info(ptr: *mut c_void, bytes: *mut usize) -> hipError_t {
    entry("hipMemPtrGetInfo", || {
        if bytes.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // For ROCm, null has no bytes.
        let found = match ptr.is_null() {
            true => 0,
            false => {
                let found = registry::find(ptr as usize);
                found.ok_or(hipError_t::hipErrorInvalidValue)?.bytes
            }
        };
        // SAFETY: not null; room for a size by the C caller's promise.
        unsafe { store(bytes, found) }
    })
}
