use crate::operands::{Factor, Fetch, check_alpha};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Handle, Matrix, MatrixMut, Result, Scalar, Triangle};

impl Handle {
    /// `c = alpha * op(a) * b` ([`Side::Left`](crate::Side::Left)) or `c = alpha * b * op(a)`
    /// ([`Side::Right`](crate::Side::Right)) for a triangular `a`.
    ///
    /// `a` is m x m on the left of an m x n matrix `b`, n x n on its right; `c` is as large as `b`, and need not hold
    /// numbers. Nothing is done if m or n is 0.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_strmm", "rocblas_dtrmm", "rocblas_ctrmm", "rocblas_ztrmm"))]
    pub fn trmm<'s, T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: impl Into<Factor<'s, T>>,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        mut c: MatrixMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "trmm";
        self.check_stream(CALL, "c", c.data.stream())?;
        let (Layout { rows, cols, .. }, found) = (b.layout, c.layout);
        if (found.rows, found.cols) != (rows, cols) {
            return Err(shape(CALL, "c", found, rows, cols));
        }
        let output = (c.data.as_mut_ptr(), c.layout.ld);
        self.triangular_product(CALL, triangle, alpha.into(), a, b, output)
    }

    /// `b = alpha * op(a) * b` or `b = alpha * b * op(a)`: [`Handle::trmm`] with the product in the place of `b`.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_strmm", "rocblas_dtrmm", "rocblas_ctrmm", "rocblas_ztrmm"))]
    pub fn trmm_in_place<'s, T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: impl Into<Factor<'s, T>>,
        a: Matrix<'_, T>,
        mut b: MatrixMut<'_, T>,
    ) -> Result<()> {
        let output = (b.data.as_mut_ptr(), b.layout.ld);
        self.triangular_product("trmm_in_place", triangle, alpha.into(), a, b.as_matrix(), output)
    }

    fn triangular_product<T: Scalar>(
        &self,
        call: &'static str,
        triangle: Triangle,
        alpha: Factor<'_, T>,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        (c, ldc): (*mut T, usize),
    ) -> Result<()> {
        let mode = check_alpha(self, call, &alpha, Fetch::Perhaps)?;
        self.check_stream(call, "a", a.data.stream())?;
        self.check_stream(call, "b", b.data.stream())?;
        triangle.check(call, a.layout, b.layout)?;
        let [m, n, lda, ldb, ldc] = [b.layout.rows, b.layout.cols, a.layout.ld, b.layout.ld, ldc].map(long);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let Triangle { side, fill, op, diag } = triangle;
        call!(
            self,
            mode,
            T::trmm,
            (m, n, lda, ldb, ldc),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The matrices are as large as sizes and leading
            // dimensions say, checked when they were made; they may be used on the handle's stream. `c` is exclusive:
            // another matrix than `b`, or `b` itself with the same leading dimension, which is how the library is told
            // to work in place.
            |trmm| unsafe {
                trmm(
                    self.raw(),
                    side.raw(),
                    fill.raw(),
                    op.raw(),
                    diag.raw(),
                    m,
                    n,
                    alpha.as_ptr().cast(),
                    a.data.as_ptr().cast(),
                    lda,
                    b.data.as_ptr().cast(),
                    ldb,
                    c.cast(),
                    ldc,
                )
            },
            "{side:?}, {fill:?}, {op:?}, {diag:?}, m {m}, n {n}, lda {lda}, ldb {ldb}, ldc {ldc}"
        )
    }
}
