//! Copies of bytes in a row.

use std::ffi::{c_int, c_void};

use hip_sys::{hipDeviceptr_t, hipError_t, hipMemcpyKind, hipStream_t};

use super::address;
use crate::device::{by_ordinal, here};
use crate::error::{INVALID, Result, calls};

/// The addresses themselves show where memory lies, so the kind is only checked.
pub(super) fn check_kind(kind: hipMemcpyKind) -> Result {
    match kind {
        hipMemcpyKind::hipMemcpyHostToHost
        | hipMemcpyKind::hipMemcpyHostToDevice
        | hipMemcpyKind::hipMemcpyDeviceToHost
        | hipMemcpyKind::hipMemcpyDeviceToDevice
        | hipMemcpyKind::hipMemcpyDefault
        | hipMemcpyKind::hipMemcpyDeviceToDeviceNoCU => Ok(()),
        _ => Err(hipError_t::hipErrorInvalidMemcpyDirection),
    }
}

/// Queues a copy. `false`: there was nothing to do.
///
/// # Safety
/// As `hipMemcpyAsync`: both ranges are valid until the stream has passed the copy.
unsafe fn queue(to: *mut c_void, from: *const c_void, bytes: usize, stream: hipStream_t) -> Result<bool> {
    let driver = here()?;
    if bytes == 0 || to.cast_const() == from {
        return Ok(false);
    }
    if to.is_null() || from.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller's promise.
    unsafe { driver.cuMemcpyAsync(address(to), address(from), bytes, stream) }?;
    Ok(true)
}

/// A copy that is complete on return, ordered as the null stream orders.
///
/// # Safety
/// As `hipMemcpy`: both ranges are valid.
unsafe fn copy(to: *mut c_void, from: *const c_void, bytes: usize, stream: hipStream_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        // `cuMemcpy` itself may return before a copy on the device is done; HIP's callers rely on it.
        if queue(to, from, bytes, stream)? {
            here()?.cuStreamSynchronize(stream)?;
        }
    }
    Ok(())
}

const NULL: hipStream_t = std::ptr::null_mut();

/// The calling thread's own default stream.
const PER_THREAD: hipStream_t = std::ptr::without_provenance_mut(2);

calls! {
    pub(crate) fn fill;

    fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) {
        check_kind(kind)?;
        copy(to, from, bytes, NULL)
    }
    fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) {
        check_kind(kind)?;
        queue(to, from, bytes, stream).map(|_| ())
    }
    fn hipMemcpyWithStream(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) {
        check_kind(kind)?;
        copy(to, from, bytes, stream)
    }
    fn hipMemcpy_spt(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) {
        check_kind(kind)?;
        copy(to, from, bytes, PER_THREAD)
    }
    fn hipMemcpyAsync_spt(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) {
        check_kind(kind)?;
        queue(to, from, bytes, if stream.is_null() { PER_THREAD } else { stream }).map(|_| ())
    }
    fn hipMemcpyHtoD(to: hipDeviceptr_t, from: *const c_void, bytes: usize) {
        copy(to, from, bytes, NULL)
    }
    fn hipMemcpyDtoH(to: *mut c_void, from: hipDeviceptr_t, bytes: usize) {
        copy(to, from, bytes, NULL)
    }
    fn hipMemcpyDtoD(to: hipDeviceptr_t, from: hipDeviceptr_t, bytes: usize) {
        copy(to, from, bytes, NULL)
    }
    fn hipMemcpyHtoDAsync(to: hipDeviceptr_t, from: *const c_void, bytes: usize, stream: hipStream_t) {
        queue(to, from, bytes, stream).map(|_| ())
    }
    fn hipMemcpyDtoHAsync(to: *mut c_void, from: hipDeviceptr_t, bytes: usize, stream: hipStream_t) {
        queue(to, from, bytes, stream).map(|_| ())
    }
    fn hipMemcpyDtoDAsync(to: hipDeviceptr_t, from: hipDeviceptr_t, bytes: usize, stream: hipStream_t) {
        queue(to, from, bytes, stream).map(|_| ())
    }
    fn hipMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize) {
        let (to_context, from_context) = (by_ordinal(to_device)?.context()?, by_ordinal(from_device)?.context()?);
        let driver = here()?;
        if bytes == 0 {
            return Ok(());
        }
        driver.cuMemcpyPeer(address(to), to_context, address(from), from_context, bytes)?;
        driver.cuStreamSynchronize(NULL)
    }
    fn hipMemcpyPeerAsync(
        to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize, stream: hipStream_t,
    ) {
        let (to_context, from_context) = (by_ordinal(to_device)?.context()?, by_ordinal(from_device)?.context()?);
        let driver = here()?;
        if bytes == 0 {
            return Ok(());
        }
        driver.cuMemcpyPeerAsync(address(to), to_context, address(from), from_context, bytes, stream)
    }
}
