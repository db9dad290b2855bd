//! Fills.

use std::ffi::{c_int, c_void};

use hip_sys::{hipDeviceptr_t, hipExtent, hipPitchedPtr, hipStream_t};

use super::address;
use crate::cuda::driver::Driver;
use crate::device::here;
use crate::error::{INVALID, Result, calls};

/// Queues a fill unless there is nothing to fill.
fn queue(to: *const c_void, count: usize, fill: impl FnOnce(&Driver) -> Result) -> Result {
    let driver = here()?;
    if count == 0 {
        return Ok(());
    }
    if to.is_null() {
        return Err(INVALID);
    }
    fill(driver)
}

const NULL: hipStream_t = std::ptr::null_mut();

/// HIP's plain fills are done when they return; CUDA's need not be.
fn wait() -> Result {
    // SAFETY: the null stream always exists.
    unsafe { here()?.cuStreamSynchronize(NULL) }
}

/// The low byte, as C's `memset` takes it.
const fn byte(value: c_int) -> u8 {
    value as u8
}

/// # Safety
/// The box is valid memory until the stream has passed the fill.
unsafe fn queue_box(to: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) -> Result {
    let slice = to.pitch.checked_mul(to.ysize).ok_or(INVALID)?;
    for z in 0..extent.depth {
        let at = to.ptr.wrapping_byte_add(z.checked_mul(slice).ok_or(INVALID)?);
        let cells = extent.width * usize::from(extent.height != 0);
        queue(at, cells, |driver| {
            let (width, height) = (extent.width, extent.height);
            // SAFETY: the caller's promise.
            unsafe { driver.cuMemsetD2D8Async(address(at), to.pitch, byte(value), width, height, stream) }
        })?;
    }
    Ok(())
}

calls! {
    pub(crate) fn fill;

    fn hipMemset(to: *mut c_void, value: c_int, bytes: usize) {
        queue(to, bytes, |driver| driver.cuMemsetD8Async(address(to), byte(value), bytes, NULL))?;
        wait()
    }
    fn hipMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: hipStream_t) {
        queue(to, bytes, |driver| driver.cuMemsetD8Async(address(to), byte(value), bytes, stream))
    }
    fn hipMemsetD8(to: hipDeviceptr_t, value: u8, count: usize) {
        queue(to, count, |driver| driver.cuMemsetD8Async(address(to), value, count, NULL))?;
        wait()
    }
    fn hipMemsetD8Async(to: hipDeviceptr_t, value: u8, count: usize, stream: hipStream_t) {
        queue(to, count, |driver| driver.cuMemsetD8Async(address(to), value, count, stream))
    }
    fn hipMemsetD16(to: hipDeviceptr_t, value: u16, count: usize) {
        queue(to, count, |driver| driver.cuMemsetD16Async(address(to), value, count, NULL))?;
        wait()
    }
    fn hipMemsetD16Async(to: hipDeviceptr_t, value: u16, count: usize, stream: hipStream_t) {
        queue(to, count, |driver| driver.cuMemsetD16Async(address(to), value, count, stream))
    }
    fn hipMemsetD32(to: hipDeviceptr_t, value: c_int, count: usize) {
        queue(to, count, |driver| driver.cuMemsetD32Async(address(to), value.cast_unsigned(), count, NULL))?;
        wait()
    }
    fn hipMemsetD32Async(to: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) {
        queue(to, count, |driver| driver.cuMemsetD32Async(address(to), value.cast_unsigned(), count, stream))
    }
    fn hipMemset2D(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) {
        queue(to, width.min(height), |driver| {
            driver.cuMemsetD2D8Async(address(to), pitch, byte(value), width, height, NULL)
        })?;
        wait()
    }
    fn hipMemset2DAsync(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) {
        queue(to, width.min(height), |driver| {
            driver.cuMemsetD2D8Async(address(to), pitch, byte(value), width, height, stream)
        })
    }
    fn hipMemset3D(to: hipPitchedPtr, value: c_int, extent: hipExtent) {
        queue_box(to, value, extent, NULL)?;
        wait()
    }
    fn hipMemset3DAsync(to: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) {
        queue_box(to, value, extent, stream)
    }
}
