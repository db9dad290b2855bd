//! rocBLAS' three forms of a product of mixed precision.

use rocblas_sys::{rocblas_datatype, rocblas_gemm_algo, rocblas_operation};

use super::family::families;
use super::mixed::{Matrix, Product};

families! {
    /// The slots of this file.
    pub(super) fn fill(rocblas_sys::Api);

    rocblas_ [any] [gemm] [plain_ex batched_ex strided_batched_ex]
        (trans_a: rocblas_operation, trans_b: rocblas_operation, m: I, n: I, k: I, alpha: *const T,
         a: *const untyped(a_type: rocblas_datatype, lda: I), b: *const untyped(b_type: rocblas_datatype, ldb: I),
         beta: *const T,
         c: *const untyped(c_type: rocblas_datatype, ldc: I), d: *mut untyped(d_type: rocblas_datatype, ldd: I),
         batch: batch, compute: rocblas_datatype, _algo: rocblas_gemm_algo, _solution: i32, _flags: u32)
        => |handle| {
            let product = Product {
                trans: [trans_a, trans_b],
                m,
                n,
                k,
                alpha,
                beta,
                a: Matrix::new(a, a_type, lda),
                b: Matrix::new(b, b_type, ldb),
                c: Matrix::new(c, c_type, ldc),
                d: Matrix::new(d, d_type, ldd),
                batch,
                listed: d.is_listed(),
                compute,
            };
            product.run(handle)
        };
}
