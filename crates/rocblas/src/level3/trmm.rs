use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice};

use crate::operands::{Call, Factor, Fetch, Number, Taken};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Handle, Matrix, Result, Scalar, Triangle};

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
    pub fn trmm<T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: impl Factor<T>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        b: Matrix<impl DeviceMemory<Element = T>>,
        c: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "trmm";
        triangle.check(CALL, a.layout, b.layout)?;
        let (Layout { rows, cols, .. }, found) = (b.layout, c.layout);
        if (found.rows, found.cols) != (rows, cols) {
            return Err(shape(CALL, "c", found, rows, cols));
        }
        let mut call = Call::new(self.stream(), CALL);
        let alpha = call.alpha(alpha, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let mut c = call.write("c", c)?;
        let product = (c.data.as_mut_ptr(), c.shape.ld);
        self.triangular_product(triangle, &alpha, a, b, product)
    }

    /// `b = alpha * op(a) * b` or `b = alpha * b * op(a)`: [`Handle::trmm`] with the product in the place of `b`.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_strmm", "rocblas_dtrmm", "rocblas_ctrmm", "rocblas_ztrmm"))]
    pub fn trmm_in_place<T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: impl Factor<T>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        b: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "trmm_in_place";
        triangle.check(CALL, a.layout, b.layout)?;
        let mut call = Call::new(self.stream(), CALL);
        let alpha = call.alpha(alpha, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let mut b = call.write("b", b)?;
        let product = (b.data.as_mut_ptr(), b.shape.ld);
        self.triangular_product(triangle, &alpha, a, b.as_read(), product)
    }

    fn triangular_product<T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: &Number<'_, T>,
        a: Taken<DeviceSlice<'_, T>, Layout>,
        b: Taken<DeviceSlice<'_, T>, Layout>,
        (c, ldc): (*mut T, usize),
    ) -> Result<()> {
        let [m, n, lda, ldb, ldc] = [b.shape.rows, b.shape.cols, a.shape.ld, b.shape.ld, ldc].map(long);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let Triangle { side, fill, op, diag } = triangle;
        call!(
            self,
            alpha.mode(),
            T::trmm,
            (m, n, lda, ldb, ldc),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The matrices are as large as sizes and leading
            // dimensions say and may be used on the handle's stream, as the call that took them checked. `c` is exclusive:
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
