use rocblas_sys::rocblas_pointer_mode;

use crate::operands::{Factor, Fetch, check_alpha};
use crate::routine::call;
use crate::{ComplexScalar, Handle, Result, Scalar, VectorMut};

impl Handle {
    /// `x = alpha * x`. The order of the elements does not matter, so a negative increment works like a positive one.
    /// (In BLAS it makes the call do nothing.)
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`].
    #[doc(alias("rocblas_sscal", "rocblas_dscal", "rocblas_cscal", "rocblas_zscal"))]
    pub fn scal<'s, T: Scalar>(&self, alpha: impl Into<Factor<'s, T>>, mut x: VectorMut<'_, T>) -> Result<()> {
        let alpha = alpha.into();
        let (mode, [n, incx]) = self.check_scal("scal", &alpha, &x)?;
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            mode,
            T::scal,
            (n, incx),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The vector is as long as length and increment
            // say, checked when it was made, may be used on the handle's stream, and is exclusive.
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
    pub fn scal_real<'s, T: ComplexScalar>(
        &self,
        alpha: impl Into<Factor<'s, T::Real>>,
        mut x: VectorMut<'_, T>,
    ) -> Result<()> {
        let alpha = alpha.into();
        let (mode, [n, incx]) = self.check_scal("scal_real", &alpha, &x)?;
        if n == 0 {
            return Ok(());
        }
        call!(
            self,
            mode,
            T::scal_real,
            (n, incx),
            // SAFETY: as in `scal`.
            |scal| unsafe { scal(self.raw(), n, alpha.as_ptr().cast(), x.data.as_mut_ptr().cast(), incx,) },
            "n {n}, incx {incx}"
        )
    }

    fn check_scal<S, T>(
        &self,
        call: &'static str,
        alpha: &Factor<'_, S>,
        x: &VectorMut<'_, T>,
    ) -> Result<(rocblas_pointer_mode, [i64; 2])> {
        let mode = check_alpha(self, call, alpha, Fetch::Never)?;
        self.check_stream(call, "x", x.stream())?;
        Ok((mode, x.shape_in_any_order()))
    }
}
