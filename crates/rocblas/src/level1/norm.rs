use hip::{DeviceMemory, DeviceMemoryMut};
use rocblas_sys::{Api, rocblas_int, rocblas_pointer_mode};

use super::reduction::Target;
use crate::functions::Routine;
use crate::functions::level1::NormSignature;
use crate::operands::Call;
use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector};

/// The functions of one of the two norms.
type Functions<T> = fn(&Api) -> Routine<NormSignature<T, rocblas_int>, NormSignature<T, i64>>;

impl Handle {
    /// The Euclidean norm of `x`. Waits for the stream. The order of the elements does not matter, so a negative
    /// increment works like a positive one. (In BLAS it makes the result 0.)
    ///
    /// # Errors
    ///
    /// As [`Handle::dot`].
    #[doc(alias("rocblas_snrm2", "rocblas_dnrm2", "rocblas_scnrm2", "rocblas_dznrm2"))]
    pub fn nrm2<T: Scalar>(&self, x: Vector<impl DeviceMemory<Element = T>>) -> Result<T::Real> {
        let mut result = T::Real::ZERO;
        self.norm("nrm2", T::nrm2, x, Target::host(&mut result))?;
        Ok(result)
    }

    /// The Euclidean norm of `x` into the one element of `result`, as [`Handle::nrm2`]. The host does not wait.
    ///
    /// # Errors
    ///
    /// As [`Handle::dot_into`].
    #[doc(alias("rocblas_snrm2", "rocblas_dnrm2", "rocblas_scnrm2", "rocblas_dznrm2"))]
    pub fn nrm2_into<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        result: impl DeviceMemoryMut<Element = T::Real>,
    ) -> Result<()> {
        self.norm("nrm2_into", T::nrm2, x, Target::Device(result))
    }

    /// The sum of `|re| + |im|` of the elements of `x`. Waits for the stream. For the increment see [`Handle::nrm2`].
    ///
    /// # Errors
    ///
    /// As [`Handle::dot`].
    #[doc(alias("rocblas_sasum", "rocblas_dasum", "rocblas_scasum", "rocblas_dzasum"))]
    pub fn asum<T: Scalar>(&self, x: Vector<impl DeviceMemory<Element = T>>) -> Result<T::Real> {
        let mut result = T::Real::ZERO;
        self.norm("asum", T::asum, x, Target::host(&mut result))?;
        Ok(result)
    }

    /// The sum of `|re| + |im|` of the elements of `x` into the one element of `result`. The host does not wait.
    ///
    /// # Errors
    ///
    /// As [`Handle::dot_into`].
    #[doc(alias("rocblas_sasum", "rocblas_dasum", "rocblas_scasum", "rocblas_dzasum"))]
    pub fn asum_into<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        result: impl DeviceMemoryMut<Element = T::Real>,
    ) -> Result<()> {
        self.norm("asum_into", T::asum, x, Target::Device(result))
    }

    fn norm<T: Scalar>(
        &self,
        name: &'static str,
        functions: Functions<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        result: Target<'_, T::Real, impl DeviceMemoryMut<Element = T::Real>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), name);
        let x = call.read("x", x)?;
        let result = result.take(&mut call)?;
        let [n, incx] = x.sizes_in_any_order();
        if n == 0 {
            return result.write_zero(self);
        }
        result.fill_by(self, |result| {
            call!(
                self,
                rocblas_pointer_mode::rocblas_pointer_mode_device,
                functions,
                (n, incx),
                // SAFETY: the handle is alive. The vector is as long as length and increment say and may be used on the
                // handle's stream, as the call that took it checked. The result is exclusive device memory to be
                // written on that stream, as the pointer mode says.
                |norm| unsafe { norm(self.raw(), n, x.data.as_ptr().cast(), incx, result.cast()) },
                "n {n}, incx {incx}"
            )
        })
    }
}
