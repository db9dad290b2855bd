//! Memory: what each address is, and the calls that allocate, free, register and describe it.

mod attribute;
pub(crate) mod backing;
mod channel;
pub(crate) mod copy;
mod external;
mod host;
mod info;
mod ipc;
mod managed;
mod mapping;
mod pitched;
mod pool;
pub(crate) mod reach;
pub(crate) mod registry;
pub(crate) mod sealed;
pub(crate) mod set;
mod virtual_memory;

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) use attribute::*;
pub(crate) use channel::*;
pub(crate) use external::*;
use hip_sys::hipError_t;
pub(crate) use host::*;
pub(crate) use info::*;
pub(crate) use ipc::*;
pub(crate) use managed::*;
use mapping::Mapping;
pub(crate) use pitched::*;
pub(crate) use pool::*;
use registry::{Allocation, Kind};
pub(crate) use virtual_memory::*;

use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::graph::{self, capture};
use crate::{log, stream, strict};

/// Takes `bytes` from the device's memory, or fails without a trace.
fn reserve(device: &Device, bytes: usize) -> Result {
    let taken = device
        .used_bytes
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&sum| sum <= device.total_bytes)
        });
    taken.map(|_| ()).map_err(|_| hipError_t::hipErrorOutOfMemory)
}

fn allocate(call: &'static str, out: *mut *mut c_void, bytes: usize, kind: Kind, flags: c_uint) -> Result {
    allocate_on(device::current()?, call, out, bytes, (kind, flags), None)
}

/// As [`allocate`], on `device`, with a value that the memory keeps alive.
fn allocate_on(
    device: &'static Device,
    call: &'static str,
    out: *mut *mut c_void,
    bytes: usize,
    (kind, flags): (Kind, c_uint),
    keeps: Option<registry::Keeps>,
) -> Result {
    if out.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    if bytes == 0 {
        // Success and a null pointer (hipamd/src/hip_memory.cpp, `ihipMalloc`).
        // SAFETY: not null; room for a pointer by the C caller's promise.
        return unsafe { store(out, std::ptr::null_mut()) };
    }
    let on_device = matches!(kind, Kind::Device | Kind::Managed);
    if on_device {
        reserve(device, bytes)?;
    } else if bytes > device.total_bytes {
        return Err(hipError_t::hipErrorOutOfMemory);
    }
    let mapping = if kind == Kind::Device {
        Mapping::ending_at_guard(bytes)
    } else {
        Mapping::starting_at_page(bytes)
    };
    let Some(mapping) = mapping else {
        if on_device {
            device.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        log::refused(call, format_args!("the system could not provide {bytes} bytes"));
        return Err(hipError_t::hipErrorOutOfMemory);
    };
    let base = mapping.base();
    let charged = if on_device { bytes } else { 0 };
    let mut allocation = Allocation::owned(mapping, bytes, kind, device, flags, charged);
    if let Some(keeps) = keeps {
        allocation = allocation.keeping(keeps);
    }
    registry::add(Arc::new(allocation));
    // SAFETY: not null; room for a pointer by the C caller's promise.
    unsafe { store(out, base as *mut c_void) }
}

/// Whether any freeing call frees memory of this kind, as on ROCm.
fn can_free_any(kind: Kind) -> bool {
    let own = [Kind::Device, Kind::Managed, Kind::Imported, Kind::Pinned];
    strict::is_off() && own.contains(&kind)
}

/// Frees memory of `hipMalloc` and its kin, after all work of its device is done.
fn free(call: &'static str, ptr: *mut c_void, freeable: &[Kind]) -> Result {
    if ptr.is_null() {
        return Ok(());
    }
    let allocation = match registry::find(ptr as usize) {
        Some(allocation) => allocation,
        None => {
            log::refused(
                call,
                format_args!("{ptr:p} is not memory of this device (never allocated, or already freed)"),
            );
            return Err(hipError_t::hipErrorInvalidValue);
        }
    };
    match allocation.kind {
        // ROCr answers for OpenCL's memory, so HIP finds an object, and releasing it frees nothing
        // (hipamd/src/hip_memory.cpp, `getMemoryObject` and `ihipFree`).
        Kind::ForeignVram | Kind::ForeignHost => {
            log::refused(
                call,
                format_args!("{ptr:p} belongs to OpenCL: returns success and frees nothing, as ROCm does"),
            );
            Ok(())
        }
        kind if !(freeable.contains(&kind) || can_free_any(kind)) || !allocation.is_owned() => {
            // ROCm looks only at the address; by HIP's documentation each kind has its own call, and a module's
            // variables have none.
            log::refused(
                call,
                format_args!("{ptr:p} was not allocated by a call that this one frees"),
            );
            Err(hipError_t::hipErrorInvalidValue)
        }
        _ if graph::is_of_graph(ptr as usize) => {
            stream::drain_device(allocation.device);
            graph::free_for_program(ptr as usize)
        }
        _ => {
            // An address inside an allocation is not one that was handed out; ROCm frees it anyway.
            if allocation.base != ptr as usize && !strict::is_off() {
                log::refused(
                    call,
                    format_args!("{ptr:p} lies inside the allocation at {:#x}", allocation.base),
                );
                return Err(hipError_t::hipErrorInvalidValue);
            }
            // Taken out first, so of two threads freeing the same pointer one is told.
            if !registry::remove(allocation.base) {
                return Err(hipError_t::hipErrorInvalidValue);
            }
            match allocation.kind {
                Kind::Device | Kind::Imported => stream::drain_device(allocation.device),
                _ => device::all().iter().for_each(stream::drain_device),
            }
            Ok(())
        }
    }
}

/// Frees all device and managed memory of `device`, which must be idle.
pub(crate) fn free_all(device: &'static Device) {
    for base in registry::bases(|allocation| {
        std::ptr::eq(allocation.device, device)
            && matches!(allocation.kind, Kind::Device | Kind::Managed)
            && allocation.is_owned()
    }) {
        registry::remove(base);
    }
}

pub(crate) unsafe extern "C" fn malloc(out: *mut *mut c_void, bytes: usize) -> hipError_t {
    entry("hipMalloc", || {
        capture::forbid("hipMalloc")?;
        allocate("hipMalloc", out, bytes, Kind::Device, 0)
    })
}

pub(crate) unsafe extern "C" fn free_device(ptr: *mut c_void) -> hipError_t {
    entry("hipFree", || {
        free("hipFree", ptr, &[Kind::Device, Kind::Managed, Kind::Imported])
    })
}

const ATTACH_GLOBAL: c_uint = 1;
const ATTACH_HOST: c_uint = 2;

pub(crate) unsafe extern "C" fn malloc_managed(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    entry("hipMallocManaged", || {
        capture::forbid("hipMallocManaged")?;
        // Zero bytes and other flags are refused (hipamd/src/hip_hmm.cpp, `hipMallocManaged`).
        if out.is_null() || bytes == 0 || !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let ranges: registry::Keeps = Arc::new(managed::Ranges::default());
        let device = device::current()?;
        // The flags are not told again.
        let what = (Kind::Managed, 0);
        allocate_on(device, "hipMallocManaged", out, bytes, what, Some(ranges))
    })
}
