use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Matrix, Op, Result, Scalar, Vector, VectorMut};

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
    pub fn gemv<'s, T: Scalar>(
        &self,
        op: Op,
        alpha: impl Into<Factor<'s, T>>,
        a: Matrix<'_, T>,
        x: Vector<'_, T>,
        beta: impl Into<Factor<'s, T>>,
        mut y: VectorMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "gemv";
        let (alpha, beta) = (alpha.into(), beta.into());
        let mode = check_pair(self, CALL, &alpha, &beta, Fetch::Never)?;
        self.check_stream(CALL, "a", a.data.stream())?;
        self.check_stream(CALL, "x", x.stream())?;
        self.check_stream(CALL, "y", y.stream())?;
        let (rows, cols) = op.shape(a.layout.rows, a.layout.cols);
        x.check_len(CALL, "x", cols)?;
        y.check_len(CALL, "y", rows)?;
        let [m, n, lda] = [a.layout.rows, a.layout.cols, a.layout.ld].map(long);
        let ([_, incx], [_, incy]) = (x.shape(), y.shape());
        if m == 0 || n == 0 {
            return Ok(());
        }
        call!(
            self,
            mode,
            T::gemv,
            (m, n, lda, incx, incy),
            // SAFETY: the handle is alive. The scalars are host values, read before the call returns, or device memory
            // to be read on the handle's stream, as the pointer mode says. Matrix and vectors are as large as sizes,
            // leading dimension and increments say, checked when they were made; they may be used on the handle's
            // stream, and `y` is exclusive.
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
