//! Page-locked host memory.

use std::ffi::{c_uint, c_void};

use cudarc::driver::sys;
use hip_sys::{
    hipHostMallocCoherent, hipHostMallocMapped, hipHostMallocNonCoherent, hipHostMallocNumaUser, hipHostMallocPortable,
    hipHostMallocWriteCombined,
};

use super::pointer;
use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null, store};

/// The flags about coherence or NUMA have no counterpart: CUDA's page-locked memory is always coherent.
fn host_flags(hip: c_uint) -> Result<c_uint> {
    let known = hipHostMallocPortable
        | hipHostMallocMapped
        | hipHostMallocWriteCombined
        | hipHostMallocNumaUser
        | hipHostMallocCoherent
        | hipHostMallocNonCoherent;
    // Both at once contradict each other (hipamd/src/hip_memory.cpp, `hipHostMalloc`).
    let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    if hip & !known != 0 || hip & both == both {
        return Err(INVALID);
    }
    let mut flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
    if hip & hipHostMallocPortable != 0 {
        flags |= sys::CU_MEMHOSTALLOC_PORTABLE;
    }
    if hip & hipHostMallocWriteCombined != 0 {
        flags |= sys::CU_MEMHOSTALLOC_WRITECOMBINED;
    }
    Ok(flags)
}

fn allocate(out: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    not_null!(out);
    let flags = host_flags(flags)?;
    let driver = here()?;
    let mut found = std::ptr::null_mut();
    if bytes != 0 {
        // SAFETY: writes one address to the place given.
        unsafe { driver.cuMemHostAlloc(&mut found, bytes, flags) }?;
    }
    // SAFETY: not null; room for a pointer by the C caller's promise.
    unsafe { store(out, found) }
}

fn free(at: *mut c_void) -> Result {
    let driver = here()?;
    if at.is_null() {
        return Ok(());
    }
    // SAFETY: the driver refuses what is not its own.
    unsafe { driver.cuMemFreeHost(at) }
}

calls! {
    pub(crate) fn fill;

    fn hipHostMalloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) {
        allocate(out, bytes, flags)
    }
    fn hipHostAlloc(out: *mut *mut c_void, bytes: usize, flags: c_uint) {
        allocate(out, bytes, flags)
    }
    fn hipMallocHost(out: *mut *mut c_void, bytes: usize) {
        allocate(out, bytes, 0)
    }
    fn hipMemAllocHost(out: *mut *mut c_void, bytes: usize) {
        allocate(out, bytes, 0)
    }
    fn hipHostFree(at: *mut c_void) {
        free(at)
    }
    fn hipFreeHost(at: *mut c_void) {
        free(at)
    }
    fn hipHostRegister(at: *mut c_void, bytes: usize, flags: c_uint) {
        if at.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        // Portable, mapped, I/O memory and read-only have CUDA's numbers.
        let flags = (flags & 0xf) | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        here()?.cuMemHostRegister_v2(at, bytes, flags)
    }
    fn hipHostUnregister(at: *mut c_void) {
        not_null!(at);
        here()?.cuMemHostUnregister(at)
    }
    fn hipHostGetDevicePointer(out: *mut *mut c_void, host: *mut c_void, flags: c_uint) {
        not_null!(out, host);
        let mut found = 0;
        here()?.cuMemHostGetDevicePointer_v2(&mut found, host, flags)?;
        store(out, pointer(found))
    }
    fn hipHostGetFlags(out: *mut c_uint, host: *mut c_void) {
        not_null!(out, host);
        here()?.cuMemHostGetFlags(out, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_memory_is_always_mapped_and_contradicting_flags_are_refused() {
        assert_eq!(host_flags(0), Ok(sys::CU_MEMHOSTALLOC_DEVICEMAP));
        assert_eq!(
            host_flags(hipHostMallocPortable | hipHostMallocWriteCombined | hipHostMallocCoherent),
            Ok(sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_WRITECOMBINED)
        );
        assert_eq!(
            host_flags(hipHostMallocCoherent | hipHostMallocNonCoherent),
            Err(INVALID)
        );
        assert_eq!(host_flags(0x100), Err(INVALID));
    }
}
