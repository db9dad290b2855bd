//! Single facts about a pointer, and memory with a purpose.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

use hip_sys::{
    hipDeviceMallocContiguous, hipDeviceMallocDefault, hipDeviceMallocFinegrained, hipDeviceMallocUncached,
    hipDeviceptr_t, hipError_t, hipInvalidDeviceId, hipMallocSignalMemory, hipMemoryType,
    hipPointer_attribute as Attribute,
};

use super::allocate;
use super::registry::{self, Kind};
use crate::device;
use crate::error::{Result, entry, store};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// Several times as many as there are.
const MOST_ATTRIBUTES: c_uint = 64;

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
        SIGNAL if bytes == size_of::<u64>() => allocate("hipExtMallocWithFlags", out, bytes, Kind::Device, flags),
        _ => Err(INVALID),
    })
}

/// Stores the attribute, or the value for none where the pointer is unknown; that is still an error.
///
/// The widths are ROCm's, which are narrower than some names suggest: a caller's variable may be no wider.
///
/// # Safety
/// `out` is null or has room for the attribute's type.
unsafe fn answer(out: *mut c_void, attribute: Attribute, ptr: hipDeviceptr_t) -> Result {
    let found = registry::find(ptr as usize);
    let found = found.as_deref();
    let on_host = |kind: Kind| !kind.is_device() && kind != Kind::ForeignVram;
    let address = |there: bool| if there { ptr } else { std::ptr::null_mut() };
    let known = found.map(|_| ()).ok_or(INVALID);
    // SAFETY: null is refused by `store`; else this function's contract.
    unsafe {
        match attribute {
            Attribute::HIP_POINTER_ATTRIBUTE_CONTEXT => {
                let device = found.filter(|allocation| !on_host(allocation.kind));
                store(out.cast(), device::context_of(device.ok_or(INVALID)?.device))
            }
            Attribute::HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => {
                // Managed memory is the host's to this question (hipamd/src/hip_memory.cpp,
                // `ihipPointerGetAttributes`).
                let answer = match found.map(|allocation| allocation.kind) {
                    None => hipMemoryType::hipMemoryTypeUnregistered,
                    Some(kind) if on_host(kind) => hipMemoryType::hipMemoryTypeHost,
                    Some(_) => hipMemoryType::hipMemoryTypeDevice,
                };
                store(out.cast(), answer)?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => {
                store(out.cast(), address(found.is_some()))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_HOST_POINTER => {
                let host = found.is_some_and(|allocation| on_host(allocation.kind));
                store(out.cast(), address(host))?;
                if host { Ok(()) } else { Err(INVALID) }
            }
            Attribute::HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
                let set = found.is_some_and(|allocation| allocation.synchronous.load(Ordering::Acquire));
                store(out.cast::<bool>(), set)?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_BUFFER_ID => {
                store(out.cast(), found.map_or(0, |allocation| allocation.number))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_IS_MANAGED => {
                let managed = found.is_some_and(|allocation| allocation.kind == Kind::Managed);
                store(out.cast::<bool>(), managed)?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => {
                let ordinal = found.map(|allocation| allocation.device.ordinal as c_int);
                store(out.cast(), ordinal.unwrap_or(hipInvalidDeviceId))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE => {
                let device = found.is_some_and(|allocation| !on_host(allocation.kind));
                store(out.cast(), c_uint::from(device))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => {
                store(out.cast(), found.map_or(0, |allocation| allocation.base))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_RANGE_SIZE => {
                store(out.cast(), found.map_or(0, |allocation| allocation.bytes as u32))?;
                known
            }
            Attribute::HIP_POINTER_ATTRIBUTE_MAPPED => {
                store(out.cast::<bool>(), found.is_some())?;
                known
            }
            // What the memory was asked for with.
            Attribute::HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
                store(out.cast(), found.map_or(0, |allocation| allocation.flags))
            }
            Attribute::HIP_POINTER_ATTRIBUTE_P2P_TOKENS
            | Attribute::HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES
            | Attribute::HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
            | Attribute::HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => Err(hipError_t::hipErrorNotSupported),
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
        // ROCm would read on behind the lists.
        let is_countable = (1..=MOST_ATTRIBUTES).contains(&count);
        if !is_countable || attributes.is_null() || outs.is_null() || ptr.is_null() {
            return Err(INVALID);
        }
        for index in 0..count as usize {
            // SAFETY: neither list is null; the C caller promises `count` entries in each, and room for each answer.
            unsafe {
                let attribute = attributes.add(index).read_unaligned();
                // What has no answer is passed over (hipamd/src/hip_memory.cpp, `hipDrvPointerGetAttributes`).
                let _ = answer(outs.add(index).read_unaligned(), attribute, ptr);
            }
        }
        Ok(())
    })
}

/// Whether copies of the memory wait for the host. They are done in stream order here either way.
pub(crate) unsafe extern "C" fn pointer_set_attribute(
    value: *const c_void,
    attribute: Attribute,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    entry("hipPointerSetAttribute", || {
        if value.is_null() || ptr.is_null() || attribute != Attribute::HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS {
            return Err(INVALID);
        }
        let allocation = registry::find(ptr as usize);
        let allocation = allocation.ok_or(hipError_t::hipErrorInvalidDevicePointer)?;
        // SAFETY: not null; the C caller promises a truth value, of which ROCm reads one byte.
        let set = unsafe { value.cast::<u8>().read() } != 0;
        allocation.synchronous.store(set, Ordering::Release);
        Ok(())
    })
}
