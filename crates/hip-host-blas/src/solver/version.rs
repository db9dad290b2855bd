//! The version string of rocSOLVER.

use std::ffi::{CStr, c_char};

use rocblas_sys::rocblas_status;

use crate::blas::status::entry;
use crate::blas::{copy_version, version_size};

/// The release whose headers the table was generated from; the last component says that this is not
/// AMD's library.
const ROCSOLVER: &CStr = c"3.28.2.host";

pub(super) unsafe extern "C" fn rocsolver_get_version_string(buf: *mut c_char, len: usize) -> rocblas_status {
    // SAFETY: the C caller's duty.
    entry("rocsolver_get_version_string", |_| unsafe {
        copy_version(ROCSOLVER, buf, len)
    })
}

pub(super) unsafe extern "C" fn rocsolver_get_version_string_size(len: *mut usize) -> rocblas_status {
    // SAFETY: the C caller's duty.
    entry("rocsolver_get_version_string_size", |_| unsafe {
        version_size(ROCSOLVER, len)
    })
}
