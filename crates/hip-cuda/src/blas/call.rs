//! The frame that every rocBLAS entry point runs in, and cuBLAS' codes as rocBLAS'.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rocblas_sys::rocblas_status as Status;

use crate::cuda::library::Opened;
use crate::cuda::opened_cublas;
use crate::log;

pub(crate) type Result<T = ()> = std::result::Result<T, Status>;

/// Runs the body of one entry point: no panic crosses the C boundary.
pub(crate) fn entry(body: impl FnOnce() -> Result) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::rocblas_status_success,
        Ok(Err(status)) => status,
        Err(_) => Status::rocblas_status_internal_error,
    }
}

/// cuBLAS' answer to `function` as a result. Pointers and enumerations are checked before cuBLAS sees them, so what it
/// reports as an invalid value is a size, a leading dimension or an increment.
#[inline]
pub(crate) fn check(code: u32, function: &'static str) -> Result {
    if code == 0 {
        return Ok(());
    }
    log::driver(function, format_args!("cuBLAS status {code}"));
    Err(status_of(code))
}

/// Codes of cublas_api.h.
const fn status_of(code: u32) -> Status {
    match code {
        0 => Status::rocblas_status_success,
        1 => Status::rocblas_status_invalid_handle,
        3 => Status::rocblas_status_memory_error,
        7 => Status::rocblas_status_invalid_size,
        8 => Status::rocblas_status_arch_mismatch,
        15 => Status::rocblas_status_not_implemented,
        _ => Status::rocblas_status_internal_error,
    }
}

/// HIP's code as rocBLAS'.
pub(crate) fn from_hip(code: hip_sys::hipError_t) -> Status {
    match code {
        hip_sys::hipError_t::hipErrorOutOfMemory => Status::rocblas_status_memory_error,
        hip_sys::hipError_t::hipErrorInvalidValue => Status::rocblas_status_invalid_value,
        hip_sys::hipError_t::hipErrorNoDevice => Status::rocblas_status_invalid_handle,
        _ => Status::rocblas_status_internal_error,
    }
}

pub(crate) fn library() -> Result<&'static Opened> {
    opened_cublas().map_err(|cause| {
        log::driver("rocblas", cause);
        Status::rocblas_status_not_implemented
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::c_name;

    #[test]
    fn every_failure_of_cublas_is_a_failure_of_rocblas() {
        for code in 1..32 {
            assert_ne!(status_of(code), Status::rocblas_status_success, "{code}");
        }
        assert_eq!(status_of(3), Status::rocblas_status_memory_error);
        assert_eq!(c_name("cublasCreate_v2\0"), c"cublasCreate_v2");
    }
}
