//! rocBLAS' functions that the list of signatures leaves out: those with a variable number of arguments, which Rust
//! cannot define, and the one that does not return.
#![allow(non_snake_case, reason = "C names")]

use std::ffi::c_void;

use rocblas_sys::{rocblas_handle, rocblas_status};

use crate::absent::Absent;

/// Not built. The sizes that follow `count` are not read: in C the caller removes what it passed.
#[unsafe(no_mangle)]
extern "C" fn rocblas_set_optimal_device_memory_size_impl(_handle: rocblas_handle, _count: usize) -> rocblas_status {
    Absent::absent("rocblas_set_optimal_device_memory_size_impl")
}

/// Not built, as above; nothing is stored in `result`.
#[unsafe(no_mangle)]
extern "C" fn rocblas_device_malloc_alloc(
    _handle: rocblas_handle,
    _result: *mut *mut c_void,
    _count: usize,
) -> rocblas_status {
    Absent::absent("rocblas_device_malloc_alloc")
}

#[unsafe(no_mangle)]
extern "C" fn rocblas_abort() -> ! {
    std::process::abort()
}
