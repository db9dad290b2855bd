//! rocSOLVER on the host. It works on the handles, streams and checks of rocBLAS.
//!
//! | module | what |
//! |---|---|
//! | `positive_definite` | the entry points of potrf and potri |
//! | `cholesky` | the arithmetic of both |
//! | `info` | failure codes, stored in device memory in stream order |
//! | `version` | the version string |
//!
//! # Where the model is stricter than the library
//! What `blas` lists, and: a value that is not a number makes its leading minor not positive
//! definite, as in LAPACK. When a matrix is not positive definite, only the factor of the minors
//! before is stored; the library leaves a half-updated rest.

mod cholesky;
mod info;
mod positive_definite;
mod version;

use rocsolver_sys::Api;

/// The rocSOLVER functions of the host platform. Slots that are empty have no implementation here.
pub const fn rocsolver_api() -> Api {
    macro_rules! table {
        ($($module:ident: $($name:ident)*;)*) => {
            Api { $($($name: Some($module::$name),)*)* ..Api::EMPTY }
        };
    }
    table! {
        version: rocsolver_get_version_string rocsolver_get_version_string_size;
        positive_definite:
            rocsolver_spotrf rocsolver_dpotrf rocsolver_cpotrf rocsolver_zpotrf
            rocsolver_spotrf_64 rocsolver_dpotrf_64 rocsolver_cpotrf_64 rocsolver_zpotrf_64
            rocsolver_spotrf_strided_batched rocsolver_dpotrf_strided_batched
            rocsolver_cpotrf_strided_batched rocsolver_zpotrf_strided_batched
            rocsolver_spotrf_strided_batched_64 rocsolver_dpotrf_strided_batched_64
            rocsolver_cpotrf_strided_batched_64 rocsolver_zpotrf_strided_batched_64
            rocsolver_spotri rocsolver_dpotri rocsolver_cpotri rocsolver_zpotri
            rocsolver_spotri_strided_batched rocsolver_dpotri_strided_batched
            rocsolver_cpotri_strided_batched rocsolver_zpotri_strided_batched;
    }
}
