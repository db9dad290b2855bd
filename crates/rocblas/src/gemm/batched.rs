use hip::{DeviceMemory, DeviceMemoryMut};

use super::{product, same_count};
use crate::operands::{Call, Factor, Fetch};
use crate::routine::call;
use crate::size::long;
use crate::{Handle, Op, Pointers, Result, Scalar};

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
    pub fn gemm_batched<T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<T>,
        a: Pointers<'_, T, impl IntoIterator<Item: DeviceMemory<Element = T>>>,
        b: Pointers<'_, T, impl IntoIterator<Item: DeviceMemory<Element = T>>>,
        beta: impl Factor<T>,
        c: Pointers<'_, T, impl IntoIterator<Item: DeviceMemoryMut<Element = T>>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_batched";
        let layouts = [a.layout(), b.layout(), c.layout()];
        let sizes = product(CALL, op_a, layouts[0], op_b, layouts[1], ("c", layouts[2]))?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = a.read(&mut call, "a")?;
        let b = b.read(&mut call, "b")?;
        let c = c.write(&mut call, "c")?;
        same_count(CALL, "a", a.count(), ("c", c.count()))?;
        same_count(CALL, "b", b.count(), ("c", c.count()))?;
        let ([m, n, k], count) = (sizes.map(long), long(c.count()));
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = layouts.map(|layout| long(layout.ld));
        let (a_array, b_array, c_array) = (a.array()?, b.array()?, c.array()?);
        call!(
            self,
            alpha.mode(),
            T::gemm_batched,
            (m, n, k, lda, ldb, ldc, count),
            // SAFETY: as in `gemm`; the arrays hold `count` addresses each, of matrices of these layouts that may be
            // used on the handle's stream, and live until it is past the call. No two of `c` share an element, and they are exclusive.
            |gemm| unsafe {
                gemm(
                    self.raw(),
                    op_a.raw(),
                    op_b.raw(),
                    m,
                    n,
                    k,
                    alpha.as_ptr().cast(),
                    a_array.cast(),
                    lda,
                    b_array.cast(),
                    ldb,
                    beta.as_ptr().cast(),
                    c_array.cast(),
                    ldc,
                    count,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, count {count}"
        )
    }
}
