//! Versions and the names of codes.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use rocblas_sys::rocblas_status as Status;

use super::handle::put;
use super::{Result, entry, library};
use crate::cuda::{Symbol, c_name};

/// The rocBLAS whose interface the table has, and the cuBLAS behind it.
fn version() -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| {
        let [major, minor, patch] = [0, 1, 2].map(|which| property(which).unwrap_or(0));
        CString::new(format!("4.4.1.cublas-{major}.{minor}.{patch}")).unwrap_or_default()
    })
}

/// `libraryPropertyType`: major, minor, patch level.
fn property(which: c_uint) -> Option<c_int> {
    static CUDA: Symbol = Symbol::new(c_name("cublasGetProperty\0"));
    let found = CUDA.in_library(library().ok()?)?;
    // SAFETY: the address of the function of this name and signature (cublas_api.h).
    let function =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint, *mut c_int) -> c_uint>(found) };
    let mut value = 0;
    // SAFETY: writes one int to the address given.
    (unsafe { function(which, &mut value) } == 0).then_some(value)
}

/// # Safety
/// `out` is null (refused) or valid for writing `len` bytes.
pub(crate) unsafe fn copy(out: *mut c_char, len: usize) -> Result {
    let bytes = version().to_bytes_with_nul();
    if out.is_null() {
        return Err(Status::rocblas_status_invalid_pointer);
    }
    if len < bytes.len() {
        return Err(Status::rocblas_status_invalid_size);
    }
    // SAFETY: not null and long enough.
    unsafe { out.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}

/// # Safety
/// `out` is null (refused) or valid for one write.
pub(crate) unsafe fn size(out: *mut usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe { put(out, version().to_bytes_with_nul().len()) }
}

unsafe extern "C" fn rocblas_get_version_string(out: *mut c_char, len: usize) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { copy(out, len) })
}

unsafe extern "C" fn rocblas_get_version_string_size(out: *mut usize) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { size(out) })
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocblas_sys::Api) {
    api.rocblas_get_version_string = Some(rocblas_get_version_string);
    api.rocblas_get_version_string_size = Some(rocblas_get_version_string_size);
}
