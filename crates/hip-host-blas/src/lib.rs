//! rocBLAS and rocSOLVER on the software device of `hip-host`.
//!
//! Both are tables of C functions with ROCm's codes, as `hip-host`'s own are. They reach the device only through
//! [`hip_host::library`] and the table of HIP.
//!
//! | module | what |
//! |---|---|
//! | `blas` | rocBLAS: handles, calls with their checks, arithmetic |
//! | `solver` | rocSOLVER, on the same handles, checks and arithmetic |
//! | [`coverage`] | what is built, and what is not |

mod blas;
pub mod coverage;
mod solver;

pub use blas::rocblas_api;
pub use solver::rocsolver_api;
