//! rocSOLVER on the host. It works on the handles, streams and checks of rocBLAS.
//!
//! | module | what |
//! |---|---|
//! | `getrf`, `getrs`, `getri`, `gesv` | the entry points for general matrices |
//! | `lu` | the arithmetic of all four |
//! | `positive_definite`, `potrs` | the entry points of potrf and potri, of potrs and posv |
//! | `cholesky` | the arithmetic of all four |
//! | `pivots` | exchanged rows, in device memory |
//! | `info` | failure codes, stored in device memory in stream order |
//! | `version` | the version string |
//!
//! # Where the model is stricter than the library
//! What `blas` lists, and: a value that is not a number makes its leading minor not positive
//! definite, as in LAPACK. When a matrix is not positive definite, only the factor of the minors
//! before is stored; the library leaves a half-updated rest. The inverse of a singular matrix is not
//! stored at all. A pivot that is no row of the matrix is an asynchronous error of the stream.

mod cholesky;
mod gesv;
mod getrf;
mod getri;
mod getrs;
mod info;
mod lu;
mod pivots;
mod positive_definite;
mod potrs;
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
        getrf:
            rocsolver_sgetrf rocsolver_dgetrf rocsolver_cgetrf rocsolver_zgetrf
            rocsolver_sgetrf_64 rocsolver_dgetrf_64 rocsolver_cgetrf_64 rocsolver_zgetrf_64
            rocsolver_sgetrf_batched rocsolver_dgetrf_batched
            rocsolver_cgetrf_batched rocsolver_zgetrf_batched
            rocsolver_sgetrf_batched_64 rocsolver_dgetrf_batched_64
            rocsolver_cgetrf_batched_64 rocsolver_zgetrf_batched_64
            rocsolver_sgetrf_strided_batched rocsolver_dgetrf_strided_batched
            rocsolver_cgetrf_strided_batched rocsolver_zgetrf_strided_batched
            rocsolver_sgetrf_strided_batched_64 rocsolver_dgetrf_strided_batched_64
            rocsolver_cgetrf_strided_batched_64 rocsolver_zgetrf_strided_batched_64
            rocsolver_sgetrf_npvt rocsolver_dgetrf_npvt rocsolver_cgetrf_npvt rocsolver_zgetrf_npvt
            rocsolver_sgetrf_npvt_64 rocsolver_dgetrf_npvt_64
            rocsolver_cgetrf_npvt_64 rocsolver_zgetrf_npvt_64
            rocsolver_sgetrf_npvt_batched rocsolver_dgetrf_npvt_batched
            rocsolver_cgetrf_npvt_batched rocsolver_zgetrf_npvt_batched
            rocsolver_sgetrf_npvt_batched_64 rocsolver_dgetrf_npvt_batched_64
            rocsolver_cgetrf_npvt_batched_64 rocsolver_zgetrf_npvt_batched_64
            rocsolver_sgetrf_npvt_strided_batched rocsolver_dgetrf_npvt_strided_batched
            rocsolver_cgetrf_npvt_strided_batched rocsolver_zgetrf_npvt_strided_batched
            rocsolver_sgetrf_npvt_strided_batched_64 rocsolver_dgetrf_npvt_strided_batched_64
            rocsolver_cgetrf_npvt_strided_batched_64 rocsolver_zgetrf_npvt_strided_batched_64
            rocsolver_sgetf2 rocsolver_dgetf2 rocsolver_cgetf2 rocsolver_zgetf2
            rocsolver_sgetf2_64 rocsolver_dgetf2_64 rocsolver_cgetf2_64 rocsolver_zgetf2_64
            rocsolver_sgetf2_batched rocsolver_dgetf2_batched
            rocsolver_cgetf2_batched rocsolver_zgetf2_batched
            rocsolver_sgetf2_batched_64 rocsolver_dgetf2_batched_64
            rocsolver_cgetf2_batched_64 rocsolver_zgetf2_batched_64
            rocsolver_sgetf2_strided_batched rocsolver_dgetf2_strided_batched
            rocsolver_cgetf2_strided_batched rocsolver_zgetf2_strided_batched
            rocsolver_sgetf2_strided_batched_64 rocsolver_dgetf2_strided_batched_64
            rocsolver_cgetf2_strided_batched_64 rocsolver_zgetf2_strided_batched_64
            rocsolver_sgetf2_npvt rocsolver_dgetf2_npvt rocsolver_cgetf2_npvt rocsolver_zgetf2_npvt
            rocsolver_sgetf2_npvt_64 rocsolver_dgetf2_npvt_64
            rocsolver_cgetf2_npvt_64 rocsolver_zgetf2_npvt_64
            rocsolver_sgetf2_npvt_batched rocsolver_dgetf2_npvt_batched
            rocsolver_cgetf2_npvt_batched rocsolver_zgetf2_npvt_batched
            rocsolver_sgetf2_npvt_batched_64 rocsolver_dgetf2_npvt_batched_64
            rocsolver_cgetf2_npvt_batched_64 rocsolver_zgetf2_npvt_batched_64
            rocsolver_sgetf2_npvt_strided_batched rocsolver_dgetf2_npvt_strided_batched
            rocsolver_cgetf2_npvt_strided_batched rocsolver_zgetf2_npvt_strided_batched
            rocsolver_sgetf2_npvt_strided_batched_64 rocsolver_dgetf2_npvt_strided_batched_64
            rocsolver_cgetf2_npvt_strided_batched_64 rocsolver_zgetf2_npvt_strided_batched_64;
        getrs:
            rocsolver_sgetrs rocsolver_dgetrs rocsolver_cgetrs rocsolver_zgetrs
            rocsolver_sgetrs_64 rocsolver_dgetrs_64 rocsolver_cgetrs_64 rocsolver_zgetrs_64
            rocsolver_sgetrs_batched rocsolver_dgetrs_batched
            rocsolver_cgetrs_batched rocsolver_zgetrs_batched
            rocsolver_sgetrs_batched_64 rocsolver_dgetrs_batched_64
            rocsolver_cgetrs_batched_64 rocsolver_zgetrs_batched_64
            rocsolver_sgetrs_strided_batched rocsolver_dgetrs_strided_batched
            rocsolver_cgetrs_strided_batched rocsolver_zgetrs_strided_batched
            rocsolver_sgetrs_strided_batched_64 rocsolver_dgetrs_strided_batched_64
            rocsolver_cgetrs_strided_batched_64 rocsolver_zgetrs_strided_batched_64;
        getri:
            rocsolver_sgetri rocsolver_dgetri rocsolver_cgetri rocsolver_zgetri
            rocsolver_sgetri_batched rocsolver_dgetri_batched
            rocsolver_cgetri_batched rocsolver_zgetri_batched
            rocsolver_sgetri_strided_batched rocsolver_dgetri_strided_batched
            rocsolver_cgetri_strided_batched rocsolver_zgetri_strided_batched
            rocsolver_sgetri_outofplace rocsolver_dgetri_outofplace
            rocsolver_cgetri_outofplace rocsolver_zgetri_outofplace
            rocsolver_sgetri_outofplace_batched rocsolver_dgetri_outofplace_batched
            rocsolver_cgetri_outofplace_batched rocsolver_zgetri_outofplace_batched
            rocsolver_sgetri_outofplace_strided_batched rocsolver_dgetri_outofplace_strided_batched
            rocsolver_cgetri_outofplace_strided_batched rocsolver_zgetri_outofplace_strided_batched;
        gesv:
            rocsolver_sgesv rocsolver_dgesv rocsolver_cgesv rocsolver_zgesv
            rocsolver_sgesv_batched rocsolver_dgesv_batched
            rocsolver_cgesv_batched rocsolver_zgesv_batched
            rocsolver_sgesv_strided_batched rocsolver_dgesv_strided_batched
            rocsolver_cgesv_strided_batched rocsolver_zgesv_strided_batched;
        positive_definite:
            rocsolver_spotrf rocsolver_dpotrf rocsolver_cpotrf rocsolver_zpotrf
            rocsolver_spotrf_64 rocsolver_dpotrf_64 rocsolver_cpotrf_64 rocsolver_zpotrf_64
            rocsolver_spotrf_batched rocsolver_dpotrf_batched
            rocsolver_cpotrf_batched rocsolver_zpotrf_batched
            rocsolver_spotrf_batched_64 rocsolver_dpotrf_batched_64
            rocsolver_cpotrf_batched_64 rocsolver_zpotrf_batched_64
            rocsolver_spotrf_strided_batched rocsolver_dpotrf_strided_batched
            rocsolver_cpotrf_strided_batched rocsolver_zpotrf_strided_batched
            rocsolver_spotrf_strided_batched_64 rocsolver_dpotrf_strided_batched_64
            rocsolver_cpotrf_strided_batched_64 rocsolver_zpotrf_strided_batched_64
            rocsolver_spotri rocsolver_dpotri rocsolver_cpotri rocsolver_zpotri
            rocsolver_spotri_batched rocsolver_dpotri_batched
            rocsolver_cpotri_batched rocsolver_zpotri_batched
            rocsolver_spotri_strided_batched rocsolver_dpotri_strided_batched
            rocsolver_cpotri_strided_batched rocsolver_zpotri_strided_batched
            rocsolver_spotf2 rocsolver_dpotf2 rocsolver_cpotf2 rocsolver_zpotf2
            rocsolver_spotf2_64 rocsolver_dpotf2_64 rocsolver_cpotf2_64 rocsolver_zpotf2_64
            rocsolver_spotf2_batched rocsolver_dpotf2_batched
            rocsolver_cpotf2_batched rocsolver_zpotf2_batched
            rocsolver_spotf2_batched_64 rocsolver_dpotf2_batched_64
            rocsolver_cpotf2_batched_64 rocsolver_zpotf2_batched_64
            rocsolver_spotf2_strided_batched rocsolver_dpotf2_strided_batched
            rocsolver_cpotf2_strided_batched rocsolver_zpotf2_strided_batched
            rocsolver_spotf2_strided_batched_64 rocsolver_dpotf2_strided_batched_64
            rocsolver_cpotf2_strided_batched_64 rocsolver_zpotf2_strided_batched_64;
        potrs:
            rocsolver_spotrs rocsolver_dpotrs rocsolver_cpotrs rocsolver_zpotrs
            rocsolver_spotrs_64 rocsolver_dpotrs_64 rocsolver_cpotrs_64 rocsolver_zpotrs_64
            rocsolver_spotrs_batched rocsolver_dpotrs_batched
            rocsolver_cpotrs_batched rocsolver_zpotrs_batched
            rocsolver_spotrs_batched_64 rocsolver_dpotrs_batched_64
            rocsolver_cpotrs_batched_64 rocsolver_zpotrs_batched_64
            rocsolver_spotrs_strided_batched rocsolver_dpotrs_strided_batched
            rocsolver_cpotrs_strided_batched rocsolver_zpotrs_strided_batched
            rocsolver_spotrs_strided_batched_64 rocsolver_dpotrs_strided_batched_64
            rocsolver_cpotrs_strided_batched_64 rocsolver_zpotrs_strided_batched_64
            rocsolver_sposv rocsolver_dposv rocsolver_cposv rocsolver_zposv
            rocsolver_sposv_batched rocsolver_dposv_batched
            rocsolver_cposv_batched rocsolver_zposv_batched
            rocsolver_sposv_strided_batched rocsolver_dposv_strided_batched
            rocsolver_cposv_strided_batched rocsolver_zposv_strided_batched;
    }
}
