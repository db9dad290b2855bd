use hip::{DeviceMemory, DeviceMemoryMut};

use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Matrix, Op, Result, Scalar, Vector};

impl Handle {
    /// `y = alpha * op(a) * x + beta * y`.
    ///
    /// `x` has as many elements as `op(a)` has columns, `y` as many as it has rows. If `beta` is 0, `y` need not hold
    /// numbers. Nothing is done if `a` has no rows or no columns, not even the product with `beta`, as in BLAS.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_sgemv", "rocblas_dgemv", "rocblas_cgemv", "rocblas_zgemv"))]
    pub fn gemv<T: Scalar>(
        &self,
        op: Op,
        alpha: impl Factor<T>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        x: Vector<impl DeviceMemory<Element = T>>,
        beta: impl Factor<T>,
        y: Vector<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), "gemv");
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Never)?;
        let a = call.read("a", a)?;
        let x = call.read("x", x)?;
        let mut y = call.write("y", y)?;
        let (rows, cols) = op.shape(a.shape.rows, a.shape.cols);
        x.check_len(&call, "x", long(cols))?;
        y.check_len(&call, "y", long(rows))?;
        let [m, n, lda] = [a.shape.rows, a.shape.cols, a.shape.ld].map(long);
        let ([_, incx], [_, incy]) = (x.sizes(), y.sizes());
        if m == 0 || n == 0 {
            return Ok(());
        }
        call!(
            self,
            alpha.mode(),
            T::gemv,
            (m, n, lda, incx, incy),
            // SAFETY: the handle is alive. The scalars are host values, read before the call returns, or device memory
            // to be read on the handle's stream, as the pointer mode says. Matrix and vectors are as large as sizes,
            // leading dimension and increments say and may be used on the handle's stream, as the call that took them
            // checked; `y` is exclusive.
            |gemv| unsafe {
                gemv(
                    self.raw(),
                    op.raw(),
                    m,
                    n,
                    alpha.as_ptr().cast(),
                    a.data.as_ptr().cast(),
                    lda,
                    x.data.as_ptr().cast(),
                    incx,
                    beta.as_ptr().cast(),
                    y.data.as_mut_ptr().cast(),
                    incy,
                )
            },
            "{op:?}, m {m}, n {n}, lda {lda}, incx {incx}, incy {incy}"
        )
    }
}
