//! Makes and destroys a rocBLAS handle with the raw functions.

use rocblas_sys::{Api, rocblas_handle, rocblas_status};

fn main() {
    let (blas, library) = match Api::load() {
        Ok(loaded) => loaded,
        Err(error) => return eprintln!("{error}"),
    };
    let (Some(create), Some(destroy)) = (blas.rocblas_create_handle, blas.rocblas_destroy_handle) else {
        return eprintln!("{} makes no handles", library.path().display());
    };
    let mut handle: rocblas_handle = std::ptr::null_mut();
    // SAFETY: `handle` is valid for writing one handle.
    let status = unsafe { create(&mut handle) };
    println!("{status:?}");
    if status == rocblas_status::rocblas_status_success {
        // SAFETY: the handle was just made and is not used again.
        println!("{:?}", unsafe { destroy(handle) });
    }
}
