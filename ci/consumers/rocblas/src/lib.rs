//! A product of two matrices on a handle that the program already has.

use rocblas::hip::DeviceBuffer;
use rocblas::{Handle, Matrix, Op, Result};

/// `c = a^T b`
///
/// # Errors
/// The shapes do not fit, or the library failed.
pub fn inner_products(
    handle: &Handle,
    a: Matrix<&DeviceBuffer<f32>>,
    b: Matrix<&DeviceBuffer<f32>>,
    c: Matrix<&mut DeviceBuffer<f32>>,
) -> Result<()> {
    handle.gemm(Op::Transpose, Op::None, 1.0, a, b, 0.0, c)
}
