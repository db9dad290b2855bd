use hip::DeviceMemoryMut;

use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::{ComplexScalar, Handle, Result, Scalar, Vector};

impl Handle {
    /// `x = alpha * x`. The order of the elements does not matter, so a negative increment works like a positive one.
    /// (In BLAS it makes the call do nothing.)
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_sscal", "rocblas_dscal", "rocblas_cscal", "rocblas_zscal"))]
    pub fn scal<T: Scalar>(&self, alpha: impl Factor<T>, x: Vector<impl DeviceMemoryMut<Element = T>>) -> Result<()> {
        let mut call = Call::new(self.stream(), "scal");
        let alpha = call.alpha(alpha, Fetch::Never)?;
        let mut x = call.write("x", x)?;
        let [n, incx] = x.sizes_in_any_order();
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            alpha.mode(),
            T::scal,
            (n, incx),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The vector is as long as length and increment
            // say and may be used on the handle's stream, as the call that took it checked; it is exclusive.
            |scal| unsafe { scal(self.raw(), n, alpha.as_ptr().cast(), x.data.as_mut_ptr().cast(), incx,) },
            "n {n}, incx {incx}"
        )
    }

    /// `x = alpha * x` for a complex vector and a real `alpha`. See [`Handle::scal`].
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_csscal", "rocblas_zdscal"))]
    pub fn scal_real<T: ComplexScalar>(
        &self,
        alpha: impl Factor<T::Real>,
        x: Vector<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), "scal_real");
        let alpha = call.alpha(alpha, Fetch::Never)?;
        let mut x = call.write("x", x)?;
        let [n, incx] = x.sizes_in_any_order();
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            alpha.mode(),
            T::scal_real,
            (n, incx),
            // SAFETY: as in `scal`.
            |scal| unsafe { scal(self.raw(), n, alpha.as_ptr().cast(), x.data.as_mut_ptr().cast(), incx,) },
            "n {n}, incx {incx}"
        )
    }
}
