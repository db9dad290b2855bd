use hip::{DeviceMemory, DeviceMemoryMut};

use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Matrix, Result, Scalar, Triangle};

impl Handle {
    /// Solves `op(a) * x = alpha * b` ([`Side::Left`](crate::Side::Left)) or `x * op(a) = alpha * b`
    /// ([`Side::Right`](crate::Side::Right)) for a triangular `a`, and writes `x` over `b`.
    ///
    /// `a` is m x m on the left of an m x n matrix `b`, n x n on its right. rocBLAS does not check whether `a` is
    /// singular: the result then holds infinities or NaNs. Nothing is done if m or n is 0.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias("rocblas_strsm", "rocblas_dtrsm", "rocblas_ctrsm", "rocblas_ztrsm"))]
    pub fn trsm<T: Scalar>(
        &self,
        triangle: Triangle,
        alpha: impl Factor<T>,
        a: Matrix<impl DeviceMemory<Element = T>>,
        b: Matrix<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "trsm";
        triangle.check(CALL, a.layout, b.layout)?;
        let mut call = Call::new(self.stream(), CALL);
        let alpha = call.alpha(alpha, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let mut b = call.write("b", b)?;
        let [m, n, lda, ldb] = [b.shape.rows, b.shape.cols, a.shape.ld, b.shape.ld].map(long);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let Triangle { side, fill, op, diag } = triangle;
        call!(
            self,
            alpha.mode(),
            T::trsm,
            (m, n, lda, ldb),
            // SAFETY: the handle is alive. `alpha` is a host value, read before the call returns, or device memory to
            // be read on the handle's stream, as the pointer mode says. The matrices are as large as sizes and leading
            // dimensions say and may be used on the handle's stream, as the call that took them checked; `b` is
            // exclusive.
            |trsm| unsafe {
                trsm(
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
                    b.data.as_mut_ptr().cast(),
                    ldb,
                )
            },
            "{side:?}, {fill:?}, {op:?}, {diag:?}, m {m}, n {n}, lda {lda}, ldb {ldb}"
        )
    }
}
