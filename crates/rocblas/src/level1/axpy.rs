use hip::{DeviceMemory, DeviceMemoryMut};

use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector};

impl Handle {
    /// `y = alpha * x + y`, for vectors of equal length.
    ///
    /// # Errors
    ///
    /// The lengths differ, or as [`Handle::gemm`].
    #[doc(alias("rocblas_saxpy", "rocblas_daxpy", "rocblas_caxpy", "rocblas_zaxpy"))]
    pub fn axpy<T: Scalar>(
        &self,
        alpha: impl Factor<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), "axpy");
        let alpha = call.alpha(alpha, Fetch::Never)?;
        let x = call.read("x", x)?;
        let mut y = call.write("y", y)?;
        let ([n, incx], [_, incy]) = (x.sizes(), y.sizes());
        y.check_len(&call, "y", n)?;
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            alpha.mode(),
            T::axpy,
            (n, incx, incy),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The vectors are as long as length and increment
            // say and may be used on the handle's stream, as the call that took them checked; `y` is exclusive.
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
