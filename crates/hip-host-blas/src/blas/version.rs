//! The version strings of rocBLAS and rocSOLVER, and the calls that have no effect here.

use std::ffi::{CStr, c_char};

use rocblas_sys::rocblas_status;

use super::status::{Outcome, entry};

/// The release whose headers the table was generated from; the last component says that this is not
/// AMD's library.
const ROCBLAS: &CStr = c"4.4.1.host";

/// # Safety
/// `buf` is null or has `len` writable bytes.
pub(crate) unsafe fn copy(version: &CStr, buf: *mut c_char, len: usize) -> Outcome {
    if buf.is_null() {
        return Err(rocblas_status::rocblas_status_invalid_pointer);
    }
    let bytes = version.to_bytes_with_nul();
    if len < bytes.len() {
        return Err(rocblas_status::rocblas_status_invalid_size);
    }
    // SAFETY: the buffer is long enough, and a constant of ours does not overlap a buffer of the
    // caller's.
    unsafe { buf.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}

/// # Safety
/// `len` is null or valid for a write.
pub(crate) unsafe fn size(version: &CStr, len: *mut usize) -> Outcome {
    if len.is_null() {
        return Err(rocblas_status::rocblas_status_invalid_pointer);
    }
    // SAFETY: checked, and the caller's promise.
    unsafe { len.write(version.to_bytes_with_nul().len()) };
    Ok(())
}

pub(super) unsafe extern "C" fn rocblas_get_version_string(buf: *mut c_char, len: usize) -> rocblas_status {
    // SAFETY: the C caller's duty.
    entry("rocblas_get_version_string", |_| unsafe { copy(ROCBLAS, buf, len) })
}

pub(super) unsafe extern "C" fn rocblas_get_version_string_size(len: *mut usize) -> rocblas_status {
    // SAFETY: the C caller's duty.
    entry("rocblas_get_version_string_size", |_| unsafe { size(ROCBLAS, len) })
}

/// Loads the kernels of a device on the real library; there is nothing to load here.
pub(super) unsafe extern "C" fn rocblas_initialize() {}
