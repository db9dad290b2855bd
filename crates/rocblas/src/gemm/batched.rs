use super::{product, same_count};
use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Op, PointerBatch, PointerBatchMut, Result, Scalar};

impl Handle {
    /// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for matrices that lie anywhere, with equal counts.
    ///
    /// Shapes are those of [`Handle::gemm`].
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias(
        "rocblas_sgemm_batched",
        "rocblas_dgemm_batched",
        "rocblas_cgemm_batched",
        "rocblas_zgemm_batched"
    ))]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_batched<'s, T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, T>>,
        a: &PointerBatch<'_, T>,
        b: &PointerBatch<'_, T>,
        beta: impl Into<Factor<'s, T>>,
        c: &mut PointerBatchMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "gemm_batched";
        let (alpha, beta) = (alpha.into(), beta.into());
        let mode = check_pair(self, CALL, &alpha, &beta, Fetch::Perhaps)?;
        self.check_stream(CALL, "a", a.stream())?;
        self.check_stream(CALL, "b", b.stream())?;
        self.check_stream(CALL, "c", c.stream())?;
        let [m, n, k] = product(CALL, op_a, a.layout(), op_b, b.layout(), ("c", c.layout()))?;
        same_count(CALL, "a", a.count(), ("c", c.count()))?;
        same_count(CALL, "b", b.count(), ("c", c.count()))?;
        let count = long(c.count());
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = [a.layout(), b.layout(), c.layout()].map(|layout| long(layout.ld));
        let (a, b, c) = (a.addresses()?, b.addresses()?, c.addresses()?);
        call!(
            self,
            mode,
            T::gemm_batched,
            (m, n, k, lda, ldb, ldc, count),
            // SAFETY: as in `gemm`; the arrays hold `count` addresses each, of matrices of these layouts that may be
            // used on the handle's stream. No two of `c` share an element, and they are exclusive.
            |gemm| unsafe {
                gemm(
                    self.raw(),
                    op_a.raw(),
                    op_b.raw(),
                    m,
                    n,
                    k,
                    alpha.as_ptr().cast(),
                    a.cast(),
                    lda,
                    b.cast(),
                    ldb,
                    beta.as_ptr().cast(),
                    c.cast(),
                    ldc,
                    count,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, count {count}"
        )
    }
}
