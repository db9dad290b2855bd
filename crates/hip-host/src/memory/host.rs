//! Host memory the device can reach: pinned by HIP, or the user's own, registered.

use std::ffi::{c_uint, c_void};

use hip_sys::hipError_t;
use rustix::mm::{MsyncFlags, msync};

use super::registry::{self, Allocation, Kind};
use super::{allocate, free};
use crate::error::{Result, entry, store};
use crate::graph::capture;
use crate::{device, log, stream, strict};

const PORTABLE: c_uint = 0x1;
const MAPPED: c_uint = 0x2;
const WRITE_COMBINED: c_uint = 0x4;
/// Known to ROCm 7, and without a meaning here.
const EXPORTABLE: c_uint = 0x8;
const UNCACHED: c_uint = 0x1000_0000;
const NUMA_USER: c_uint = 0x2000_0000;
const COHERENT: c_uint = 0x4000_0000;
const NON_COHERENT: c_uint = 0x8000_0000;
const HOST_FLAGS: c_uint =
    PORTABLE | MAPPED | WRITE_COMBINED | EXPORTABLE | UNCACHED | NUMA_USER | COHERENT | NON_COHERENT;
/// Portable, mapped, I/O memory, read-only.
const REGISTER_FLAGS: c_uint = 0xf;

fn allocate_pinned(call: &'static str, out: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    // Coherent and non-coherent exclude each other, and uncached excludes both (hipamd/src/hip_memory.cpp,
    // `ihipHostMalloc`).
    capture::forbid(call)?;
    if bytes == 0 {
        return allocate(call, out, bytes, Kind::Pinned, flags);
    }
    let coherence = flags & (COHERENT | NON_COHERENT);
    if flags & !HOST_FLAGS != 0 || coherence == COHERENT | NON_COHERENT || (flags & UNCACHED != 0 && coherence != 0) {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    allocate(call, out, bytes, Kind::Pinned, flags)
}

pub(crate) unsafe extern "C" fn host_malloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    entry("hipHostMalloc", || allocate_pinned("hipHostMalloc", out, bytes, flags))
}

pub(crate) unsafe extern "C" fn host_alloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    entry("hipHostAlloc", || allocate_pinned("hipHostAlloc", out, bytes, flags))
}

pub(crate) unsafe extern "C" fn malloc_host(out: *mut *mut c_void, bytes: usize) -> hipError_t {
    entry("hipMallocHost", || allocate_pinned("hipMallocHost", out, bytes, 0))
}

pub(crate) unsafe extern "C" fn host_free(ptr: *mut c_void) -> hipError_t {
    entry("hipHostFree", || free("hipHostFree", ptr, &[Kind::Pinned]))
}

pub(crate) unsafe extern "C" fn free_host(ptr: *mut c_void) -> hipError_t {
    entry("hipFreeHost", || free("hipFreeHost", ptr, &[Kind::Pinned]))
}

/// Whether every page of the range is mapped in this process.
fn is_mapped(start: usize, bytes: usize) -> bool {
    const PAGE: usize = 4096;
    let first = start / PAGE * PAGE;
    let Some(end) = start.checked_add(bytes) else {
        return false;
    };
    // SAFETY: an asynchronous sync reads and writes no memory and reports unmapped pages as an error; the address is
    // page-aligned.
    unsafe { msync(first as *mut c_void, end - first, MsyncFlags::ASYNC) }.is_ok()
}

pub(crate) unsafe extern "C" fn host_register(ptr: *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    entry("hipHostRegister", || {
        capture::forbid("hipHostRegister")?;
        let start = ptr as usize;
        if ptr.is_null() || bytes == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = device::current()?;
        match registry::find(start).map(|allocation| allocation.kind) {
            Some(Kind::Pinned | Kind::Registered | Kind::Managed) => {
                return Err(hipError_t::hipErrorHostMemoryAlreadyRegistered);
            }
            Some(kind) => {
                // The kernel driver pins user memory only, and this is memory it made itself
                // (libhsakmt/src/fmm.c, `fmm_register_memory`).
                log::refused(
                    "hipHostRegister",
                    format_args!("{ptr:p} is {kind:?} memory, not the process's own"),
                );
                return Err(hipError_t::hipErrorInvalidValue);
            }
            None => {}
        }
        if !is_mapped(start, bytes) {
            log::refused(
                "hipHostRegister",
                format_args!("{bytes} bytes at {ptr:p} are not all mapped"),
            );
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let allocation = Allocation::borrowed(start, bytes, Kind::Registered, device, flags);
        registry::add_borrowed(allocation).map_err(|_| hipError_t::hipErrorHostMemoryAlreadyRegistered)
    })
}

pub(crate) unsafe extern "C" fn host_unregister(ptr: *mut c_void) -> hipError_t {
    entry("hipHostUnregister", || {
        capture::forbid("hipHostUnregister")?;
        if ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let start = ptr as usize;
        let registered =
            registry::find(start).filter(|allocation| allocation.kind == Kind::Registered && allocation.base == start);
        if registered.is_none() || !registry::remove(start) {
            return Err(hipError_t::hipErrorHostMemoryNotRegistered);
        }
        device::all().iter().for_each(stream::drain_device);
        Ok(())
    })
}

/// The allocation behind a host pointer the device can reach.
fn reachable(ptr: *mut c_void) -> Result<std::sync::Arc<Allocation>> {
    registry::find(ptr as usize)
        .filter(|allocation| {
            let on_host = [Kind::Pinned, Kind::Registered, Kind::Managed];
            on_host.contains(&allocation.kind)
        })
        .ok_or(hipError_t::hipErrorInvalidValue)
}

pub(crate) unsafe extern "C" fn host_get_device_pointer(
    out: *mut *mut c_void,
    ptr: *mut c_void,
    flags: c_uint,
) -> hipError_t {
    entry("hipHostGetDevicePointer", || {
        if out.is_null() || flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // ROCm finds device memory too, which is at the same address.
        if !strict::is_off() || registry::find(ptr as usize).is_none() {
            reachable(ptr)?;
        }
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { store(out, ptr) }
    })
}

pub(crate) unsafe extern "C" fn host_get_flags(out: *mut c_uint, ptr: *mut c_void) -> hipError_t {
    entry("hipHostGetFlags", || {
        // Of memory that HIP made: what was registered has none to tell.
        let memory = reachable(ptr)?;
        if memory.kind == Kind::Registered {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: null is refused by `store`; otherwise room for the flags by the C caller's promise.
        unsafe { store(out, memory.flags) }
    })
}
