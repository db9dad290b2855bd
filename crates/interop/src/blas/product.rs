use rocblas::{Element, Factor, GemmInput, Handle, Op, Scalar};

use super::{Batch, Matrix, Memory, MemoryMut, Name, Pointers, check_apart};
use crate::Result;

/// `c = alpha * op_a(a) * op_b(b) + beta * c`.
///
/// With `op_a(a)` of m x k elements and `op_b(b)` of k x n, `c` is m x n. Nothing is done if m or n is 0; with k = 0
/// `c` is only scaled. If `beta` is 0, `c` need not hold numbers.
///
/// # Errors
/// See [the module](super#errors).
#[doc(alias("rocblas_sgemm", "rocblas_dgemm", "rocblas_cgemm", "rocblas_zgemm"))]
#[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
pub fn gemm<'f, T, A, B, C>(
    handle: &Handle,
    op_a: Op,
    op_b: Op,
    alpha: impl Into<Factor<'f, T>>,
    a: Matrix<A>,
    b: Matrix<B>,
    beta: impl Into<Factor<'f, T>>,
    c: Matrix<C>,
) -> Result<()>
where
    T: Scalar,
    A: Memory<Element = T>,
    B: Memory<Element = T>,
    C: MemoryMut<Element = T>,
{
    const CALL: &str = "gemm";
    let stream = handle.stream();
    let name = |argument| Name { call: CALL, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_b, b) = b.take(name("b"), stream)?;
    let (at_c, c) = c.take_mut(name("c"), stream)?;
    check_apart(CALL, &at_c, &[&at_a, &at_b])?;
    Ok(handle.gemm(op_a, op_b, alpha, a, b, beta, c)?)
}

/// [`gemm`] for elements narrower than the compute type: see [`GemmInput`] for the types. `alpha` and `beta` are of the
/// compute type.
///
/// # Errors
/// See [the module](super#errors).
#[doc(alias = "rocblas_gemm_ex")]
#[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
pub fn gemm_ex<'f, In, Out, Compute, A, B, C>(
    handle: &Handle,
    op_a: Op,
    op_b: Op,
    alpha: impl Into<Factor<'f, Compute>>,
    a: Matrix<A>,
    b: Matrix<B>,
    beta: impl Into<Factor<'f, Compute>>,
    c: Matrix<C>,
) -> Result<()>
where
    In: GemmInput<Out, Compute>,
    Out: Element,
    Compute: Element,
    A: Memory<Element = In>,
    B: Memory<Element = In>,
    C: MemoryMut<Element = Out>,
{
    const CALL: &str = "gemm_ex";
    let stream = handle.stream();
    let name = |argument| Name { call: CALL, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_b, b) = b.take(name("b"), stream)?;
    let (at_c, c) = c.take_mut(name("c"), stream)?;
    check_apart(CALL, &at_c, &[&at_a, &at_b])?;
    Ok(handle.gemm_ex(op_a, op_b, alpha, a, b, beta, c)?)
}

/// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for every matrix of the batches, which have equal counts.
///
/// Shapes are those of [`gemm`]. An input of stride 0 is the same matrix for all.
///
/// # Errors
/// The counts differ, two matrices of `c` share an element, or see [the module](super#errors).
#[doc(alias(
    "rocblas_sgemm_strided_batched",
    "rocblas_dgemm_strided_batched",
    "rocblas_cgemm_strided_batched",
    "rocblas_zgemm_strided_batched"
))]
#[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
pub fn gemm_strided_batched<'f, T, A, B, C>(
    handle: &Handle,
    op_a: Op,
    op_b: Op,
    alpha: impl Into<Factor<'f, T>>,
    a: Batch<A>,
    b: Batch<B>,
    beta: impl Into<Factor<'f, T>>,
    c: Batch<C>,
) -> Result<()>
where
    T: Scalar,
    A: Memory<Element = T>,
    B: Memory<Element = T>,
    C: MemoryMut<Element = T>,
{
    const CALL: &str = "gemm_strided_batched";
    let stream = handle.stream();
    let name = |argument| Name { call: CALL, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_b, b) = b.take(name("b"), stream)?;
    let (at_c, c) = c.take_mut(name("c"), stream)?;
    check_apart(CALL, &at_c, &[&at_a, &at_b])?;
    Ok(handle.gemm_strided_batched(op_a, op_b, alpha, a, b, beta, c)?)
}

/// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for matrices at any offsets of their memory, with equal
/// counts.
///
/// Shapes are those of [`gemm`].
///
/// # Errors
/// The counts differ, two matrices of `c` share an element, or see [the module](super#errors).
#[doc(alias(
    "rocblas_sgemm_batched",
    "rocblas_dgemm_batched",
    "rocblas_cgemm_batched",
    "rocblas_zgemm_batched"
))]
#[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
pub fn gemm_batched<'f, T, A, B, C>(
    handle: &Handle,
    op_a: Op,
    op_b: Op,
    alpha: impl Into<Factor<'f, T>>,
    a: Pointers<'_, T, A>,
    b: Pointers<'_, T, B>,
    beta: impl Into<Factor<'f, T>>,
    c: Pointers<'_, T, C>,
) -> Result<()>
where
    T: Scalar,
    A: Memory<Element = T>,
    B: Memory<Element = T>,
    C: MemoryMut<Element = T>,
{
    const CALL: &str = "gemm_batched";
    let stream = handle.stream();
    let name = |argument| Name { call: CALL, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_b, b) = b.take(name("b"), stream)?;
    let (at_c, mut c) = c.take_mut(name("c"), stream)?;
    check_apart(CALL, &at_c, &[&at_a, &at_b])?;
    Ok(handle.gemm_batched(op_a, op_b, alpha, &a, &b, beta, &mut c)?)
}
