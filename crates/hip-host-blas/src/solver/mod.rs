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
    let mut api = Api::EMPTY;
    api.rocsolver_get_version_string = Some(version::rocsolver_get_version_string);
    api.rocsolver_get_version_string_size = Some(version::rocsolver_get_version_string_size);
    getrf::slots(&mut api);
    getrs::slots(&mut api);
    getri::slots(&mut api);
    gesv::slots(&mut api);
    positive_definite::slots(&mut api);
    potrs::slots(&mut api);
    api
}
