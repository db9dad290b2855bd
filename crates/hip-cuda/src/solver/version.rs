//! Versions: the solver goes with the BLAS.

use std::ffi::c_char;

use rocblas_sys::rocblas_status as Status;

use crate::blas::{entry, version};

unsafe extern "C" fn rocsolver_get_version_string(out: *mut c_char, len: usize) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { version::copy(out, len) })
}

unsafe extern "C" fn rocsolver_get_version_string_size(out: *mut usize) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { version::size(out) })
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocsolver_sys::Api) {
    api.rocsolver_get_version_string = Some(rocsolver_get_version_string);
    api.rocsolver_get_version_string_size = Some(rocsolver_get_version_string_size);
}
