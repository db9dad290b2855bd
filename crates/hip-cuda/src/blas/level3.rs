//! Matrices.

use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_operation, rocblas_side};

use super::routines;

routines! {
    /// Matrix routines.
    pub(super) fn fill;

    [s d c z] gemm [plain batched strided_batched] = "gemm_v2" (
        trans_a: rocblas_operation, trans_b: rocblas_operation, m: I, n: I, k: I, alpha: *const T,
        a: *const operand(lda: I), b: *const operand(ldb: I), beta: *const T, c: *mut operand(ldc: I), batch: batch)
        nothing if m == 0 || n == 0 || batch == 0, needs alpha beta c;
    [s d c z] syrk [plain] = "syrk_v2" (
        uplo: rocblas_fill, trans: rocblas_operation, n: I, k: I, alpha: *const T, a: *const T, lda: I,
        beta: *const T, c: *mut T, ldc: I)
        nothing if n == 0, needs alpha beta c;
    [c z] herk [plain] = "herk_v2" (
        uplo: rocblas_fill, trans: rocblas_operation, n: I, k: I, alpha: *const R, a: *const T, lda: I,
        beta: *const R, c: *mut T, ldc: I)
        nothing if n == 0, needs alpha beta c;
    [s d c z] symm [plain] = "symm_v2" (
        side: rocblas_side, uplo: rocblas_fill, m: I, n: I, alpha: *const T, a: *const T, lda: I, b: *const T, ldb: I,
        beta: *const T, c: *mut T, ldc: I)
        nothing if m == 0 || n == 0, needs alpha a b beta c;
    [c z] hemm [plain] = "hemm_v2" (
        side: rocblas_side, uplo: rocblas_fill, m: I, n: I, alpha: *const T, a: *const T, lda: I, b: *const T, ldb: I,
        beta: *const T, c: *mut T, ldc: I)
        nothing if m == 0 || n == 0, needs alpha a b beta c;
    [s d c z] trmm [plain] = "trmm_v2" (
        side: rocblas_side, uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, m: I, n: I,
        alpha: *const T, a: *const T, lda: I, b: *const T, ldb: I, c: *mut T, ldc: I)
        nothing if m == 0 || n == 0, needs alpha a b c;
    [s d c z] trsm [plain batched] = "trsm_v2" (
        side: rocblas_side, uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, m: I, n: I,
        alpha: *const T, a: *const operand(lda: I), b: *mut operand(ldb: I), batch: batch)
        nothing if m == 0 || n == 0 || batch == 0, needs alpha a b;
    [s d c z] geam [plain] = "geam" (
        trans_a: rocblas_operation, trans_b: rocblas_operation, m: I, n: I, alpha: *const T, a: *const T, lda: I,
        beta: *const T, b: *const T, ldb: I, c: *mut T, ldc: I)
        nothing if m == 0 || n == 0, needs alpha beta c;
    [s d c z] dgmm [plain] = "dgmm" (
        side: rocblas_side, m: I, n: I, a: *const T, lda: I, x: *const T, incx: I, c: *mut T, ldc: I)
        nothing if m == 0 || n == 0, needs a x c;
}
