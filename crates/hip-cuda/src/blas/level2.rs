//! Matrices and vectors.

use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_operation};

use super::routines;

routines! {
    /// Matrix-vector routines.
    pub(super) fn fill;

    [s d c z] gemv [plain strided_batched] = "gemv_v2" (
        trans: rocblas_operation, m: I, n: I, alpha: *const T, a: *const operand(lda: I), x: *const operand(incx: I),
        beta: *const T, y: *mut operand(incy: I), batch: batch)
        nothing if m == 0 || n == 0 || batch == 0, needs alpha a x beta y;
    [s d] ger [plain] = "ger_v2" (
        m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        nothing if m == 0 || n == 0, needs alpha x y a;
    [c z] geru [plain] = "geru_v2" (
        m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        nothing if m == 0 || n == 0, needs alpha x y a;
    [c z] gerc [plain] = "gerc_v2" (
        m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        nothing if m == 0 || n == 0, needs alpha x y a;
    [s d c z] trsv [plain] = "trsv_v2" (
        uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, n: I, a: *const T, lda: I, x: *mut T,
        incx: I)
        nothing if n == 0, needs a x;
    [s d c z] trmv [plain] = "trmv_v2" (
        uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, n: I, a: *const T, lda: I, x: *mut T,
        incx: I)
        nothing if n == 0, needs a x;
}
