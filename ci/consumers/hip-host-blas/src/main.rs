//! Uses the software device as a rocBLAS library.

fn main() {
    let rocblas = hip_host_blas::rocblas_api();
    let create_handle = rocblas.rocblas_create_handle.expect("the software device has it");
    let mut handle = std::ptr::null_mut();
    // SAFETY: `handle` is valid for writing one pointer.
    let status = unsafe { create_handle(&mut handle) };
    println!("{status:?}: {handle:?}, {rocblas:?}");
}
