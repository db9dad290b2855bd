//! rocSOLVER on cuSOLVER and cuBLAS.
//!
//! cuSOLVER has no batches that meet rocSOLVER's guarantees (its `potrfBatched` destroys the other triangle, its
//! `potrsBatched` takes one column), no inverse from LU factors and no batched inverse from Cholesky factors. So
//! Cholesky factors and inverses of matrices that do not fill the device by themselves are made of products
//! (`blocked`). Any other batch is its matrices one after another on the handle's stream, and the inverse from LU
//! factors is cuBLAS' `getriBatched` and a copy back. Batches passed as device arrays of pointers are read back for
//! that, which waits for the stream.

mod blocked;
mod cholesky;
mod diagonal;
mod lu;
mod operand;
mod scalar;
mod version;

pub(crate) use scalar::Scalar;

/// The rocSOLVER function table. Without cuSOLVER all but Cholesky factors and inverses of up to 1024 rows return
/// `rocblas_status_not_implemented`.
#[must_use]
pub const fn rocsolver_api() -> rocsolver_sys::Api {
    let mut api = rocsolver_sys::Api::EMPTY;
    version::fill(&mut api);
    cholesky::fill(&mut api);
    lu::fill(&mut api);
    api
}
