use rocblas_sys::rocblas_pointer_mode;

use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector, VectorMut};

const HOST: rocblas_pointer_mode = rocblas_pointer_mode::rocblas_pointer_mode_host;

impl Handle {
    /// `y = x`, for vectors of equal length.
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_scopy", "rocblas_dcopy", "rocblas_ccopy", "rocblas_zcopy"))]
    pub fn copy<T: Scalar>(&self, x: Vector<'_, T>, mut y: VectorMut<'_, T>) -> Result<()> {
        const CALL: &str = "copy";
        self.check_stream(CALL, "x", x.stream())?;
        self.check_stream(CALL, "y", y.stream())?;
        y.check_len(CALL, "y", x.len())?;
        let ([n, incx], [_, incy]) = (x.shape(), y.shape());
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            HOST,
            T::copy,
            (n, incx, incy),
            // SAFETY: the handle is alive. The vectors are as long as length and increment say, checked when they were
            // made; they may be used on the handle's stream, and `y` is exclusive.
            |copy| unsafe {
                copy(
                    self.raw(),
                    n,
                    x.data.as_ptr().cast(),
                    incx,
                    y.data.as_mut_ptr().cast(),
                    incy,
                )
            },
            "n {n}, incx {incx}, incy {incy}"
        )
    }

    /// Exchanges `x` and `y`, vectors of equal length.
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_sswap", "rocblas_dswap", "rocblas_cswap", "rocblas_zswap"))]
    pub fn swap<T: Scalar>(&self, mut x: VectorMut<'_, T>, mut y: VectorMut<'_, T>) -> Result<()> {
        const CALL: &str = "swap";
        self.check_stream(CALL, "x", x.stream())?;
        self.check_stream(CALL, "y", y.stream())?;
        y.check_len(CALL, "y", x.len())?;
        let ([n, incx], [_, incy]) = (x.shape(), y.shape());
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            HOST,
            T::swap,
            (n, incx, incy),
            // SAFETY: as in `copy`; both are exclusive.
            |swap| unsafe {
                swap(
                    self.raw(),
                    n,
                    x.data.as_mut_ptr().cast(),
                    incx,
                    y.data.as_mut_ptr().cast(),
                    incy,
                )
            },
            "n {n}, incx {incx}, incy {incy}"
        )
    }
}
