//! A product of two matrices on a handle that the program already has.

use rocblas::{Handle, Matrix, MatrixMut, Op, Result};

/// `c = a^T b`
///
/// # Errors
/// The shapes do not fit, or the library failed.
pub fn inner_products(handle: &Handle, a: Matrix<'_, f32>, b: Matrix<'_, f32>, c: MatrixMut<'_, f32>) -> Result<()> {
    handle.gemm(Op::Transpose, Op::None, 1.0, a, b, 0.0, c)
}
