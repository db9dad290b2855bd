use crate::operands::{Factor, Fetch, check_alpha};
use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector, VectorMut};

impl Handle {
    /// `y = alpha * x + y`, for vectors of equal length.
    ///
    /// # Errors
    ///
    /// The lengths differ, a vector or `alpha` was taken for another stream, a size needs the `_64` function, which the
    /// library lacks, or rocBLAS refused the call.
    #[doc(alias("rocblas_saxpy", "rocblas_daxpy", "rocblas_caxpy", "rocblas_zaxpy"))]
    pub fn axpy<'s, T: Scalar>(
        &self,
        alpha: impl Into<Factor<'s, T>>,
        x: Vector<'_, T>,
        mut y: VectorMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "axpy";
        let alpha = alpha.into();
        let mode = check_alpha(self, CALL, &alpha, Fetch::Never)?;
        self.check_stream(CALL, "x", x.stream())?;
        self.check_stream(CALL, "y", y.stream())?;
        y.check_len(CALL, "y", x.len())?;
        let ([n, incx], [_, incy]) = (x.shape(), y.shape());
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            mode,
            T::axpy,
            (n, incx, incy),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The vectors are as long as length and increment
            // say, checked when they were made; they may be used on the handle's stream, and `y` is exclusive.
            |axpy| unsafe {
                axpy(
                    self.raw(),
                    n,
                    alpha.as_ptr().cast(),
                    x.data.as_ptr().cast(),
                    incx,
                    y.data.as_mut_ptr().cast(),
                    incy,
                )
            },
            "n {n}, incx {incx}, incy {incy}"
        )
    }
}
