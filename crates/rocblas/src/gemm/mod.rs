//! Products of matrices: single ones, batches, and those of narrow elements.

mod batched;
mod batched_ex;
mod ex;
mod strided_batched;
mod strided_batched_ex;

use hip::{DeviceMemory, DeviceMemoryMut};

use crate::operands::{BatchShape, Call, Factor, Fetch};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Error, Handle, Matrix, Op, Result, Scalar};

impl Handle {
    /// `c = alpha * op_a(a) * op_b(b) + beta * c`.
    ///
    /// With `op_a(a)` of m x k elements and `op_b(b)` of k x n, `c` is m x n. Nothing is done if m or n is 0; with k =
    /// 0 `c` is only scaled. If `beta` is 0, `c` need not hold numbers.
    ///
    /// # Errors
    ///
    /// Nothing is queued then:
    ///
    /// - An operand does not fit its memory ([`Error::Operand`]) or another operand ([`Error::Shape`]).
    /// - `c` shares memory with another operand: [`Error::OperandsOverlap`].
    /// - The memory can't be used on the handle's stream: an error of its owner, or [`Error::WrongStream`] for a slice
    ///   that was taken for another one.
    /// - `alpha` and `beta` are not of one kind.
    /// - A size needs the `_64` function, which the library lacks, or rocBLAS refused the call.
    #[doc(alias("rocblas_sgemm", "rocblas_dgemm", "rocblas_cgemm", "rocblas_zgemm"))]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm<T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<T>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        b: Matrix<impl DeviceMemory<Element = T>>,
        beta: impl Factor<T>,
        c: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "gemm";
        let sizes = product(CALL, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let mut c = call.write("c", c)?;
        let [m, n, k] = sizes.map(long);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = [a.shape, b.shape, c.shape].map(|layout| long(layout.ld));
        call!(
            self,
            alpha.mode(),
            T::gemm,
            (m, n, k, lda, ldb, ldc),
            // SAFETY: the handle is alive. The scalars are host values, read before the call returns, or device memory
            // to be read on the handle's stream, as the pointer mode says. The matrices are as large as sizes and
            // leading dimensions say and may be used on the handle's stream, as the call that took them checked; `c` is
            // exclusive.
            |gemm| unsafe {
                gemm(
                    self.raw(),
                    op_a.raw(),
                    op_b.raw(),
                    m,
                    n,
                    k,
                    alpha.as_ptr().cast(),
                    a.data.as_ptr().cast(),
                    lda,
                    b.data.as_ptr().cast(),
                    ldb,
                    beta.as_ptr().cast(),
                    c.data.as_mut_ptr().cast(),
                    ldc,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}"
        )
    }
}

/// m, n and k of a product, if the shapes fit each other. Each is checked on its own when its matrix is taken.
#[inline]
pub(crate) fn product(
    call: &'static str,
    op_a: Op,
    a: Layout,
    op_b: Op,
    b: Layout,
    (name, c): (&'static str, Layout),
) -> Result<[usize; 3]> {
    let (m, k) = op_a.shape(a.rows, a.cols);
    let (inner, n) = op_b.shape(b.rows, b.cols);
    if inner != k {
        let (rows, cols) = op_b.shape(k, n);
        return Err(shape(call, "b", b, rows, cols));
    }
    if (c.rows, c.cols) != (m, n) {
        return Err(shape(call, name, c, m, n));
    }
    Ok([m, n, k])
}

/// m, n, k and the number of products of batches, if the shapes fit each other.
pub(crate) fn products(call: &'static str, (op_a, op_b): (Op, Op), [a, b, c]: [BatchShape; 3]) -> Result<[usize; 4]> {
    let [m, n, k] = product(call, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
    same_count(call, "a", a.count, ("c", c.count))?;
    same_count(call, "b", b.count, ("c", c.count))?;
    Ok([m, n, k, c.count])
}

/// Refuses an argument whose number of matrices differs from the output's.
pub(crate) fn same_count(
    call: &'static str,
    argument: &'static str,
    found: usize,
    (output, count): (&'static str, usize),
) -> Result<()> {
    if found == count {
        return Ok(());
    }
    Err(Error::Shape {
        call,
        argument,
        found: format!("a batch of {found}"),
        expected: format!("one of {count}, as {output},"),
    })
}
