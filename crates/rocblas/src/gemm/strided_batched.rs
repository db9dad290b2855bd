use super::{product, same_count};
use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::long;
use crate::{Batch, BatchMut, Handle, Op, Result, Scalar};

impl Handle {
    /// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for every matrix of the batches, which have equal counts.
    ///
    /// An input of stride 0 is used for all of them. Shapes are those of [`Handle::gemm`].
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias(
        "rocblas_sgemm_strided_batched",
        "rocblas_dgemm_strided_batched",
        "rocblas_cgemm_strided_batched",
        "rocblas_zgemm_strided_batched"
    ))]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_strided_batched<'s, T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, T>>,
        a: Batch<'_, T>,
        b: Batch<'_, T>,
        beta: impl Into<Factor<'s, T>>,
        mut c: BatchMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "gemm_strided_batched";
        let (alpha, beta) = (alpha.into(), beta.into());
        let mode = check_pair(self, CALL, &alpha, &beta, Fetch::Perhaps)?;
        self.check_stream(CALL, "a", a.data.stream())?;
        self.check_stream(CALL, "b", b.data.stream())?;
        self.check_stream(CALL, "c", c.data.stream())?;
        let [m, n, k] = product(CALL, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        same_count(CALL, "a", a.count, ("c", c.count))?;
        same_count(CALL, "b", b.count, ("c", c.count))?;
        let count = long(c.count);
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = [a.layout, b.layout, c.layout].map(|layout| long(layout.ld));
        let [stride_a, stride_b, stride_c] = [a.stride, b.stride, c.stride].map(long);
        call!(
            self,
            mode,
            T::gemm_strided_batched,
            (m, n, k, lda, ldb, ldc, count),
            // SAFETY: as in `gemm`; strides and counts were checked against the slices when the batches were made, and
            // no two matrices of `c` share an element.
            |gemm| unsafe {
                gemm(
                    self.raw(),
                    op_a.raw(),
                    op_b.raw(),
                    m,
                    n,
                    k,
                    alpha.as_ptr().cast(),
                    a.data.as_ptr().cast(),
                    lda,
                    stride_a,
                    b.data.as_ptr().cast(),
                    ldb,
                    stride_b,
                    beta.as_ptr().cast(),
                    c.data.as_mut_ptr().cast(),
                    ldc,
                    stride_c,
                    count,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, \
             strides {stride_a}, {stride_b}, {stride_c}, count {count}"
        )
    }
}
