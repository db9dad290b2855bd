//! Device memory.

use std::ffi::{c_uint, c_void};

use hip_sys::{hipDeviceptr_t, hipExtent, hipPitchedPtr};

use super::{address, pointer};
use crate::device::here;
use crate::error::{INVALID, Result, UNSUPPORTED, calls, not_null, store};

fn allocate(bytes: usize) -> Result<*mut c_void> {
    let driver = here()?;
    // HIP has no error for nothing (hipamd/src/hip_memory.cpp, `ihipMalloc`).
    if bytes == 0 {
        return Ok(std::ptr::null_mut());
    }
    let mut found = 0;
    // SAFETY: writes one address to the place given.
    unsafe { driver.cuMemAlloc_v2(&mut found, bytes) }?;
    Ok(pointer(found))
}

/// Rows of `width` bytes at the distance that the device prefers.
fn pitched(width: usize, height: usize, element: c_uint) -> Result<(*mut c_void, usize)> {
    let driver = here()?;
    if width == 0 || height == 0 {
        return Ok((std::ptr::null_mut(), 0));
    }
    let (mut found, mut pitch) = (0, 0);
    // SAFETY: writes one address and one size to the places given.
    unsafe { driver.cuMemAllocPitch_v2(&mut found, &mut pitch, width, height, element) }?;
    Ok((pointer(found), pitch))
}

calls! {
    pub(crate) fn fill;

    fn hipMalloc(out: *mut *mut c_void, bytes: usize) {
        not_null!(out);
        store(out, allocate(bytes)?)
    }
    fn hipFree(at: *mut c_void) {
        let driver = here()?;
        if at.is_null() {
            return Ok(());
        }
        driver.cuMemFree_v2(address(at))
    }
    /// Device memory that host and device see in order, or that holds signals, exists only on AMD.
    fn hipExtMallocWithFlags(out: *mut *mut c_void, bytes: usize, flags: c_uint) {
        not_null!(out);
        if flags != hip_sys::hipDeviceMallocDefault {
            return Err(UNSUPPORTED);
        }
        store(out, allocate(bytes)?)
    }
    fn hipMallocPitch(out: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        not_null!(out, pitch);
        let (found, distance) = pitched(width, height, 16)?;
        store(out, found)?;
        store(pitch, distance)
    }
    fn hipMemAllocPitch(out: *mut hipDeviceptr_t, pitch: *mut usize, width: usize, height: usize, element: c_uint) {
        not_null!(out, pitch);
        let (found, distance) = pitched(width, height, element)?;
        store(out, found)?;
        store(pitch, distance)
    }
    fn hipMalloc3D(out: *mut hipPitchedPtr, extent: hipExtent) {
        not_null!(out);
        let rows = extent.height.checked_mul(extent.depth).ok_or(INVALID)?;
        let (ptr, pitch) = pitched(extent.width, rows, 16)?;
        store(out, hipPitchedPtr { ptr, pitch, xsize: extent.width, ysize: extent.height })
    }
}
