use hip::{DeviceMemory, DeviceMemoryMut};

use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::{long, shape};
use crate::{ComplexScalar, Error, Fill, Handle, Matrix, Op, Result};

impl Handle {
    /// `c = alpha * op(a) * op(a)^H + beta * c` for a Hermitian `c`, of which only the triangle `fill` is read and
    /// written.
    ///
    /// `op(a)` is n x k, `c` is n x n. The imaginary parts of the diagonal become 0. Nothing is done if n is 0.
    ///
    /// The other triangle of `c` keeps what it held. [`hermitian_inverse`](crate::solver::hermitian_inverse) takes `c` as
    /// it is; [`Mirror::complete`](crate::solver::Mirror::complete) fills the other triangle for calls that read all of it.
    ///
    /// # Errors
    ///
    /// `op` is [`Op::Transpose`] (the product would not be Hermitian), or as [`Handle::gemm`].
    #[doc(alias("rocblas_cherk", "rocblas_zherk"))]
    pub fn herk<T: ComplexScalar>(
        &self,
        fill: Fill,
        op: Op,
        alpha: impl Factor<T::Real>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        beta: impl Factor<T::Real>,
        c: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "herk";
        if op == Op::Transpose {
            return Err(Error::Unsupported {
                call: CALL,
                argument: "op",
                found: format!("{op:?}"),
                expected: "None or ConjTranspose",
            });
        }
        let (n, k) = op.shape(a.layout.rows, a.layout.cols);
        if (c.layout.rows, c.layout.cols) != (n, n) {
            return Err(shape(CALL, "c", c.layout, n, n));
        }
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let mut c = call.write("c", c)?;
        if n == 0 {
            return Ok(());
        }
        let [n, k, lda, ldc] = [n, k, a.shape.ld_for_elements(), c.shape.ld].map(long);
        call!(
            self,
            alpha.mode(),
            T::herk,
            (n, k, lda, ldc),
            // SAFETY: the handle is alive. The scalars are host values, read before the call returns, or device memory
            // to be read on the handle's stream, as the pointer mode says. The matrices are as large as sizes and
            // leading dimensions say and may be used on the handle's stream, as the call that took them checked; `c` is
            // exclusive.
            |herk| unsafe {
                herk(
                    self.raw(),
                    fill.raw(),
                    op.raw(),
                    n,
                    k,
                    alpha.as_ptr().cast(),
                    a.data.as_ptr().cast(),
                    lda,
                    beta.as_ptr().cast(),
                    c.data.as_mut_ptr().cast(),
                    ldc,
                )
            },
            "{fill:?}, {op:?}, n {n}, k {k}, lda {lda}, ldc {ldc}"
        )
    }
}
