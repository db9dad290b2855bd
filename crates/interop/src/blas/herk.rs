use rocblas::{ComplexScalar, Factor, Fill, Handle, Op};

use super::{Matrix, Memory, MemoryMut, Name, check_apart};
use crate::Result;

/// `c = alpha * op(a) * op(a)^H + beta * c` for a Hermitian `c`, of which only the triangle `fill` is read and written:
/// a covariance, for half the work of [`gemm`](super::gemm).
///
/// `op(a)` is n x k, `c` is n x n. The imaginary parts of the diagonal become 0. Nothing is done if n is 0.
///
/// # Errors
/// `op` is [`Op::Transpose`] (the product would not be Hermitian), or see [the module](super#errors).
#[doc(alias("rocblas_cherk", "rocblas_zherk"))]
pub fn herk<'f, T, A, C>(
    handle: &Handle,
    fill: Fill,
    op: Op,
    alpha: impl Into<Factor<'f, T::Real>>,
    a: Matrix<A>,
    beta: impl Into<Factor<'f, T::Real>>,
    c: Matrix<C>,
) -> Result<()>
where
    T: ComplexScalar,
    A: Memory<Element = T>,
    C: MemoryMut<Element = T>,
{
    const CALL: &str = "herk";
    let stream = handle.stream();
    let name = |argument| Name { call: CALL, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_c, c) = c.take_mut(name("c"), stream)?;
    check_apart(CALL, &at_c, &[&at_a])?;
    Ok(handle.herk(fill, op, alpha, a, beta, c)?)
}
