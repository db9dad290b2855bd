//! rocBLAS on cuBLAS. Both are column-major and take the same arguments in the same order; enumerations and codes
//! differ.

mod call;
pub(crate) mod convert;
pub(crate) mod cusolver;
pub(crate) mod family;
mod gemm_ex;
pub(crate) mod handle;
mod level1;
mod level2;
mod level3;
mod mixed;
mod routine;
pub(crate) mod scratch;
pub(crate) mod version;
mod workspace;

pub(crate) use call::{Result, check, entry, from_hip, library};
pub(crate) use routine::routines;

/// The rocBLAS function table. Without cuBLAS its functions return `rocblas_status_not_implemented`.
#[must_use]
pub const fn rocblas_api() -> rocblas_sys::Api {
    let mut api = rocblas_sys::Api::EMPTY;
    handle::fill(&mut api);
    version::fill(&mut api);
    level1::fill(&mut api);
    level2::fill(&mut api);
    level3::fill(&mut api);
    gemm_ex::fill(&mut api);
    workspace::fill(&mut api);
    api
}

#[cfg(test)]
mod tests {
    use rocblas_sys::rocblas_status as Status;

    use super::*;

    #[test]
    fn no_handle_is_an_invalid_handle_before_anything_else_is_looked_at() {
        let sgemm = rocblas_api().rocblas_sgemm.unwrap();
        let none = rocblas_sys::rocblas_operation::rocblas_operation_none;
        let null = std::ptr::null_mut::<f32>();
        // SAFETY: without a handle nothing is followed.
        let status = unsafe { sgemm(null.cast(), none, none, 1, 1, 1, null, null, 1, null, 1, null, null, 1) };
        assert_eq!(status, Status::rocblas_status_invalid_handle);
    }
}
