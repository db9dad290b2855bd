use hip::{DeviceMemory, DeviceMemoryMut};
use rocblas_sys::{Api, rocblas_int};

use crate::functions::Routine;
use crate::functions::level2::GerSignature;
use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Matrix, Result, Scalar, Vector};

/// The functions of one of the two products.
type Functions<T> = fn(&Api) -> Routine<GerSignature<T, rocblas_int>, GerSignature<T, i64>>;

impl Handle {
    /// `a = alpha * x * y^T + a`, nothing conjugated.
    ///
    /// `x` has as many elements as `a` has rows, `y` as many as it has columns.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_sger", "rocblas_dger", "rocblas_cgeru", "rocblas_zgeru", "geru"))]
    pub fn ger<T: Scalar>(
        &self,
        alpha: impl Factor<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        a: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        self.outer_product("ger", T::ger, alpha, x, y, a)
    }

    /// `a = alpha * x * y^H + a`; the same as [`Handle::ger`] for real scalars.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_cgerc", "rocblas_zgerc"))]
    pub fn gerc<T: Scalar>(
        &self,
        alpha: impl Factor<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        a: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        self.outer_product("gerc", T::gerc, alpha, x, y, a)
    }

    fn outer_product<T: Scalar>(
        &self,
        name: &'static str,
        functions: Functions<T>,
        alpha: impl Factor<T>,
        x: Vector<impl DeviceMemory<Element = T>>,
        y: Vector<impl DeviceMemory<Element = T>>,
        a: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        let mut call = Call::new(self.stream(), name);
        let alpha = call.alpha(alpha, Fetch::Never)?;
        let x = call.read("x", x)?;
        let y = call.read("y", y)?;
        let mut a = call.write("a", a)?;
        let [m, n, lda] = [a.shape.rows, a.shape.cols, a.shape.ld].map(long);
        x.check_len(&call, "x", m)?;
        y.check_len(&call, "y", n)?;
        let ([_, incx], [_, incy]) = (x.sizes(), y.sizes());
        if m == 0 || n == 0 {
            return Ok(());
        }
        call!(
            self,
            alpha.mode(),
            functions,
            (m, n, incx, incy, lda),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. Matrix and vectors are as large as sizes,
            // leading dimension and increments say and may be used on the handle's stream, as the call that took them
            // checked; `a` is exclusive.
            |ger| unsafe {
                ger(
                    self.raw(),
                    m,
                    n,
                    alpha.as_ptr().cast(),
                    x.data.as_ptr().cast(),
                    incx,
                    y.data.as_ptr().cast(),
                    incy,
                    a.data.as_mut_ptr().cast(),
                    lda,
                )
            },
            "m {m}, n {n}, incx {incx}, incy {incy}, lda {lda}"
        )
    }
}
