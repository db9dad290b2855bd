use hip::{DeviceMemory, DeviceMemoryMut};
use rocblas_sys::rocblas_pointer_mode;

use crate::operands::Call;
use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector};

const HOST: rocblas_pointer_mode = rocblas_pointer_mode::rocblas_pointer_mode_host;

impl Handle {
    /// `y = x`, for vectors of equal length.
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_scopy", "rocblas_dcopy", "rocblas_ccopy", "rocblas_zcopy"))]
    pub fn copy<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), "copy");
        let x = call.read("x", x)?;
        let mut y = call.write("y", y)?;
        let ([n, incx], [_, incy]) = (x.sizes(), y.sizes());
        y.check_len(&call, "y", n)?;
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            HOST,
            T::copy,
            (n, incx, incy),
            // SAFETY: the handle is alive. The vectors are as long as length and increment say and may be used on the
            // handle's stream, as the call that took them checked; `y` is exclusive.
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
    pub fn swap<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemoryMut<Element = T>>,
        y: Vector<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), "swap");
        let mut x = call.write("x", x)?;
        let mut y = call.write("y", y)?;
        let ([n, incx], [_, incy]) = (x.sizes(), y.sizes());
        y.check_len(&call, "y", n)?;
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
