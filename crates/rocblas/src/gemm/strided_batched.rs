use hip::{DeviceMemory, DeviceMemoryMut};

use super::products;
use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::long;
use crate::{Batch, Handle, Op, Result, Scalar};

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
    pub fn gemm_strided_batched<T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<T>,
        a: Batch<impl DeviceMemory<Element = T>>,
        b: Batch<impl DeviceMemory<Element = T>>,
        beta: impl Factor<T>,
        c: Batch<impl DeviceMemoryMut<Element = T>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_strided_batched";
        let shapes = [a.shape(), b.shape(), c.shape()];
        let sizes = products(CALL, (op_a, op_b), shapes)?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let mut c = call.write("c", c)?;
        let [m, n, k, count] = sizes.map(long);
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = shapes.map(|shape| long(shape.layout.ld));
        let [stride_a, stride_b, stride_c] = shapes.map(|shape| long(shape.stride));
        call!(
            self,
            alpha.mode(),
            T::gemm_strided_batched,
            (m, n, k, lda, ldb, ldc, count),
            // SAFETY: as in `gemm`; no two matrices of `c` share an element.
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
