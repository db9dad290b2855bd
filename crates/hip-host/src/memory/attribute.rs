//! Single facts about a pointer, and memory with a purpose.

use std::ffi::{c_int, c_uint, c_void};

use hip_sys::{
    hipDeviceMallocContiguous, hipDeviceMallocDefault, hipDeviceMallocFinegrained,
    hipDeviceMallocUncached, hipDeviceptr_t, hipError_t, hipInvalidDeviceId, hipMallocSignalMemory,
    hipMemoryType, hipPointer_attribute as Attribute,
};

use super::allocate;
use super::registry::{self, Kind};
use crate::error::{Result, entry, store};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

const DEFAULT: c_uint = hipDeviceMallocDefault;
const FINE_GRAINED: c_uint = hipDeviceMallocFinegrained;
const SIGNAL: c_uint = hipMallocSignalMemory;
const UNCACHED: c_uint = hipDeviceMallocUncached;
const CONTIGUOUS: c_uint = hipDeviceMallocContiguous;

pub(crate) unsafe extern "C" fn ext_malloc_with_flags(
    out: *mut *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> hipError_t {
    entry("hipExtMallocWithFlags", || match flags {
        DEFAULT | FINE_GRAINED | UNCACHED | CONTIGUOUS => {
            allocate("hipExtMallocWithFlags", out, bytes, Kind::Device, flags)
        }
        // One signal (hipamd/src/hip_memory.cpp, `hipExtMallocWithFlags`).
        SIGNAL if bytes == size_of::<u64>() => {
            allocate("hipExtMallocWithFlags", out, bytes, Kind::Device, flags)
        }
        _ => Err(INVALID),
    })
}

/// # Safety
/// `out` is null or has room for the attribute's type.
unsafe fn answer(out: *mut c_void, attribute: Attribute, ptr: hipDeviceptr_t) -> Result {
    let found = registry::find(ptr as usize);
    let on_host = |kind: Kind| !kind.is_device() && kind != Kind::ForeignVram;
    let address = |there: bool| if there { ptr } else { std::ptr::null_mut() };
    // SAFETY: null is refused by `store`; else this function's contract.
    unsafe {
        match attribute {
            Attribute::HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => {
                let kind = found.map(|allocation| allocation.kind);
                let answer = match kind {
                    None => return Err(INVALID),
                    Some(Kind::Managed) => hipMemoryType::hipMemoryTypeManaged,
                    Some(Kind::Pinned | Kind::Registered) => hipMemoryType::hipMemoryTypeHost,
                    Some(_) => hipMemoryType::hipMemoryTypeDevice,
                };
                store(out.cast(), answer)
            }
            Attribute::HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => {
                store(out.cast(), address(found.is_some()))
            }
            Attribute::HIP_POINTER_ATTRIBUTE_HOST_POINTER => {
                let host = found.is_some_and(|allocation| on_host(allocation.kind));
                if !host {
                    return Err(INVALID);
                }
                store(out.cast(), address(true))
            }
            Attribute::HIP_POINTER_ATTRIBUTE_IS_MANAGED => {
                let managed = found.is_some_and(|allocation| allocation.kind == Kind::Managed);
                store(out.cast::<bool>(), managed)
            }
            Attribute::HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => {
                let ordinal = found.map(|allocation| allocation.device.ordinal as c_int);
                store(out.cast(), ordinal.unwrap_or(hipInvalidDeviceId))
            }
            Attribute::HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => {
                let base = found.ok_or(INVALID)?.base as *mut c_void;
                store(out.cast(), base)
            }
            Attribute::HIP_POINTER_ATTRIBUTE_RANGE_SIZE => {
                store(out.cast(), found.ok_or(INVALID)?.bytes)
            }
            Attribute::HIP_POINTER_ATTRIBUTE_MAPPED => store(out.cast::<bool>(), found.is_some()),
            // Known names without an answer here, and unknown ones.
            Attribute::HIP_POINTER_ATTRIBUTE_CONTEXT
            | Attribute::HIP_POINTER_ATTRIBUTE_P2P_TOKENS
            | Attribute::HIP_POINTER_ATTRIBUTE_BUFFER_ID
            | Attribute::HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS => Err(hipError_t::hipErrorNotSupported),
            _ => Err(INVALID),
        }
    }
}

pub(crate) unsafe extern "C" fn pointer_get_attribute(
    out: *mut c_void,
    attribute: Attribute,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    entry("hipPointerGetAttribute", || {
        if out.is_null() || ptr.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; room for the attribute's type by the C caller's promise.
        unsafe { answer(out, attribute, ptr) }
    })
}

pub(crate) unsafe extern "C" fn drv_pointer_get_attributes(
    count: c_uint,
    attributes: *mut Attribute,
    outs: *mut *mut c_void,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    entry("hipDrvPointerGetAttributes", || {
        if count == 0 || attributes.is_null() || outs.is_null() || ptr.is_null() {
            return Err(INVALID);
        }
        for index in 0..count as usize {
            // SAFETY: neither list is null; the C caller promises `count` entries in each, and room for each answer.
            unsafe {
                let attribute = attributes.add(index).read_unaligned();
                answer(outs.add(index).read_unaligned(), attribute, ptr)?;
            }
        }
        Ok(())
    })
}
