//! Memory for rows and slices.

use std::ffi::{c_uint, c_void};

use hip_sys::{hipDeviceptr_t, hipError_t, hipExtent, hipPitchedPtr};

use super::allocate;
use super::registry::Kind;
use crate::device::ROW_ALIGNMENT;
use crate::error::{Result, entry, store};
use crate::graph::capture;

/// Allocates and returns address and pitch; nothing for an empty extent.
fn allocate_rows(call: &'static str, width: usize, rows: Option<usize>) -> Result<(*mut c_void, usize)> {
    capture::forbid(call)?;
    let invalid = hipError_t::hipErrorInvalidValue;
    let rows = rows.ok_or(invalid)?;
    let mut ptr = std::ptr::null_mut();
    if width == 0 || rows == 0 {
        return Ok((ptr, 0));
    }
    let pitch = width.checked_next_multiple_of(ROW_ALIGNMENT).ok_or(invalid)?;
    let bytes = pitch.checked_mul(rows).ok_or(invalid)?;
    allocate(call, &mut ptr, bytes, Kind::Device, 0)?;
    Ok((ptr, pitch))
}

fn allocate_pitched(
    call: &'static str,
    out: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> Result {
    if out.is_null() || pitch.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    let (address, bytes) = allocate_rows(call, width, Some(height))?;
    // SAFETY: neither is null; room for a pointer and a size by the C caller's promise.
    unsafe {
        store(out, address)?;
        store(pitch, bytes)
    }
}

pub(crate) unsafe extern "C" fn malloc_pitch(
    out: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> hipError_t {
    entry("hipMallocPitch", || {
        allocate_pitched("hipMallocPitch", out, pitch, width, height)
    })
}

pub(crate) unsafe extern "C" fn mem_alloc_pitch(
    out: *mut hipDeviceptr_t,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> hipError_t {
    entry("hipMemAllocPitch", || {
        // Sizes a thread loads at once (hipamd/src/hip_memory.cpp, `hipMemAllocPitch`).
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        allocate_pitched("hipMemAllocPitch", out, pitch, width, height)
    })
}

pub(crate) unsafe extern "C" fn malloc_3d(out: *mut hipPitchedPtr, extent: hipExtent) -> hipError_t {
    entry("hipMalloc3D", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let rows = extent.height.checked_mul(extent.depth);
        let (ptr, pitch) = allocate_rows("hipMalloc3D", extent.width, rows)?;
        let answer = hipPitchedPtr {
            ptr,
            pitch,
            xsize: extent.width,
            ysize: extent.height,
        };
        // SAFETY: not null; room for the structure by the C caller's promise.
        unsafe { store(out, answer) }
    })
}
