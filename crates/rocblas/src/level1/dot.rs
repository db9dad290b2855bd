use hip::{DeviceMemory, DeviceMemoryMut};
use rocblas_sys::{Api, rocblas_int, rocblas_pointer_mode};

use super::reduction::Target;
use crate::functions::Routine;
use crate::functions::level1::DotSignature;
use crate::operands::Call;
use crate::routine::call;
use crate::{Handle, Result, Scalar, Vector};

/// The functions of one of the two products.
type Functions<T> = fn(&Api) -> Routine<DotSignature<T, rocblas_int>, DotSignature<T, i64>>;

impl Handle {
    /// The sum of `x[i] * y[i]`, nothing conjugated. Waits for the stream.
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`], or earlier work of the stream failed.
    #[doc(alias("rocblas_sdot", "rocblas_ddot", "rocblas_cdotu", "rocblas_zdotu", "dotu"))]
    pub fn dot<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
    ) -> Result<T> {
        let mut result = T::ZERO;
        self.sum_of_products("dot", T::dot, x, y, Target::host(&mut result))?;
        Ok(result)
    }

    /// The sum of `x[i] * y[i]`, nothing conjugated, into the one element of `result`. The host does not wait.
    ///
    /// # Errors
    ///
    /// As [`Handle::axpy`], or `result` has not exactly one element.
    #[doc(alias("rocblas_sdot", "rocblas_ddot", "rocblas_cdotu", "rocblas_zdotu"))]
    pub fn dot_into<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        result: impl DeviceMemoryMut<Element = T>,
    ) -> Result<()> {
        self.sum_of_products("dot_into", T::dot, x, y, Target::Device(result))
    }

    /// The sum of `conj(x[i]) * y[i]`; the same as [`Handle::dot`] for real scalars. Waits for the stream.
    ///
    /// # Errors
    ///
    /// As [`Handle::dot`].
    #[doc(alias("rocblas_cdotc", "rocblas_zdotc"))]
    pub fn dotc<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
    ) -> Result<T> {
        let mut result = T::ZERO;
        self.sum_of_products("dotc", T::dotc, x, y, Target::host(&mut result))?;
        Ok(result)
    }

    /// The sum of `conj(x[i]) * y[i]` into the one element of `result`. The host does not wait.
    ///
    /// # Errors
    ///
    /// As [`Handle::dot_into`].
    #[doc(alias("rocblas_cdotc", "rocblas_zdotc"))]
    pub fn dotc_into<T: Scalar>(
        &self,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        result: impl DeviceMemoryMut<Element = T>,
    ) -> Result<()> {
        self.sum_of_products("dotc_into", T::dotc, x, y, Target::Device(result))
    }

    fn sum_of_products<T: Scalar>(
        &self,
        name: &'static str,
        functions: Functions<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        result: Target<'_, T, impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), name);
        let x = call.read("x", x)?;
        let y = call.read("y", y)?;
        let result = result.take(&mut call)?;
        let ([n, incx], [_, incy]) = (x.sizes(), y.sizes());
        y.check_len(&call, "y", n)?;
        if n == 0 {
            return result.write_zero(self);
        }
        result.fill_by(self, |result| {
            call!(
                self,
                rocblas_pointer_mode::rocblas_pointer_mode_device,
                functions,
                (n, incx, incy),
                // SAFETY: the handle is alive. The vectors are as long as length and increment say and may be used on
                // the handle's stream, as the call that took them checked. The result is exclusive device memory to be
                // written on that stream, as the pointer mode says.
                |dot| unsafe {
                    dot(
                        self.raw(),
                        n,
                        x.data.as_ptr().cast(),
                        incx,
                        y.data.as_ptr().cast(),
                        incy,
                        result.cast(),
                    )
                },
                "n {n}, incx {incx}, incy {incy}"
            )
        })
    }
}
