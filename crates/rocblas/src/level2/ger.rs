use rocblas_sys::{Api, rocblas_int};

use crate::functions::Routine;
use crate::functions::level2::GerSignature;
use crate::operands::{Factor, Fetch, check_alpha};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, MatrixMut, Result, Scalar, Vector};

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
    pub fn ger<'s, T: Scalar>(
        &self,
        alpha: impl Into<Factor<'s, T>>,
        x: Vector<'_, T>,
        y: Vector<'_, T>,
        a: MatrixMut<'_, T>,
    ) -> Result<()> {
        self.outer_product("ger", T::ger, alpha.into(), x, y, a)
    }

    /// `a = alpha * x * y^H + a`; the same as [`Handle::ger`] for real scalars.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_cgerc", "rocblas_zgerc"))]
    pub fn gerc<'s, T: Scalar>(
        &self,
        alpha: impl Into<Factor<'s, T>>,
        x: Vector<'_, T>,
        y: Vector<'_, T>,
        a: MatrixMut<'_, T>,
    ) -> Result<()> {
        self.outer_product("gerc", T::gerc, alpha.into(), x, y, a)
    }

    fn outer_product<T: Scalar>(
        &self,
        call: &'static str,
        functions: Functions<T>,
        alpha: Factor<'_, T>,
        x: Vector<'_, T>,
        y: Vector<'_, T>,
        mut a: MatrixMut<'_, T>,
    ) -> Result<()> {
        let mode = check_alpha(self, call, &alpha, Fetch::Never)?;
        self.check_stream(call, "x", x.stream())?;
        self.check_stream(call, "y", y.stream())?;
        self.check_stream(call, "a", a.data.stream())?;
        x.check_len(call, "x", a.layout.rows)?;
        y.check_len(call, "y", a.layout.cols)?;
        let [m, n, lda] = [a.layout.rows, a.layout.cols, a.layout.ld].map(long);
        let ([_, incx], [_, incy]) = (x.shape(), y.shape());
        if m == 0 || n == 0 {
            return Ok(());
        }
        call!(
            self,
            mode,
            functions,
            (m, n, incx, incy, lda),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. Matrix and vectors are as large as sizes,
            // leading dimension and increments say, checked when they were made; they may be used on the handle's
            // stream, and `a` is exclusive.
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
