use hip::{DeviceMemory, DeviceMemoryMut};
use rocblas_sys::{rocblas_gemm_algo, rocblas_gemm_flags};

use super::{product, same_count};
use crate::element::{Element, GemmInput};
use crate::operands::{Call, Factor, Fetch, Number, TakenPointers};
use crate::routine::{both, call};
use crate::size::{Layout, long, shape};
use crate::{Handle, Op, Pointers, Result};

impl Handle {
    /// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for matrices that lie anywhere, with equal counts,
    /// with elements narrower than the compute type: see [`GemmInput`] for the types.
    ///
    /// Shapes are those of [`Handle::gemm`].
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_batched_ex<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Pointers<'_, In, impl IntoIterator<Item: DeviceMemory<Element = In>>>,
        b: Pointers<'_, In, impl IntoIterator<Item: DeviceMemory<Element = In>>>,
        beta: impl Factor<Compute>,
        c: Pointers<'_, Out, impl IntoIterator<Item: DeviceMemoryMut<Element = Out>>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_batched_ex";
        let sizes = product(CALL, op_a, a.layout(), op_b, b.layout(), ("c", c.layout()))?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = a.read(&mut call, "a")?;
        let b = b.read(&mut call, "b")?;
        let c = c.write(&mut call, "c")?;
        self.mixed_pointers(&call, (op_a, op_b), sizes, (&alpha, &beta), [&a, &b], [&c, &c])
    }

    /// `d[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]`: [`Handle::gemm_batched_ex`] with the sums in other
    /// matrices. `c` and `d` have one shape; how they lie may differ.
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_batched_ex_into<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Pointers<'_, In, impl IntoIterator<Item: DeviceMemory<Element = In>>>,
        b: Pointers<'_, In, impl IntoIterator<Item: DeviceMemory<Element = In>>>,
        beta: impl Factor<Compute>,
        c: Pointers<'_, Out, impl IntoIterator<Item: DeviceMemory<Element = Out>>>,
        d: Pointers<'_, Out, impl IntoIterator<Item: DeviceMemoryMut<Element = Out>>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_batched_ex_into";
        let sizes = product(CALL, op_a, a.layout(), op_b, b.layout(), ("c", c.layout()))?;
        let (Layout { rows, cols, .. }, found) = (c.layout(), d.layout());
        if (found.rows, found.cols) != (rows, cols) {
            return Err(shape(CALL, "d", found, rows, cols));
        }
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = a.read(&mut call, "a")?;
        let b = b.read(&mut call, "b")?;
        let c = c.read(&mut call, "c")?;
        let d = d.write(&mut call, "d")?;
        same_count(CALL, "c", c.count(), ("d", d.count()))?;
        self.mixed_pointers(&call, (op_a, op_b), sizes, (&alpha, &beta), [&a, &b], [&c, &d])
    }

    /// The sums go to the last matrices, which may be those that are added.
    fn mixed_pointers<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        call: &Call<'_>,
        (op_a, op_b): (Op, Op),
        sizes: [usize; 3],
        (alpha, beta): (&Number<'_, Compute>, &Number<'_, Compute>),
        [a, b]: [&TakenPointers<'_, In>; 2],
        [c, d]: [&TakenPointers<'_, Out>; 2],
    ) -> Result<()> {
        same_count(call.name(), "a", a.count(), ("c", c.count()))?;
        same_count(call.name(), "b", b.count(), ("c", c.count()))?;
        let ([m, n, k], count) = (sizes.map(long), long(c.count()));
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc, ldd] = [a.layout(), b.layout(), c.layout(), d.layout()].map(|layout| long(layout.ld));
        let (a, b, addends, sums) = (a.array()?, b.array()?, c.array()?, d.array()?);
        let [input, result, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            alpha.mode(),
            both!(rocblas_gemm_batched_ex, rocblas_gemm_batched_ex_64, "6.3"),
            (m, n, k, lda, ldb, ldc, ldd, count),
            // SAFETY: as in `gemm_ex`; the arrays hold `count` addresses each, of matrices of these layouts that may be
            // used on the handle's stream, and live until it is past the call. No two of the sums share an element, and they are exclusive: other matrices
            // than those of `c`, or `c` itself, by the same array. The array of the sums is not written, though its
            // type does not say so.
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
                    input,
                    lda,
                    b.cast(),
                    input,
                    ldb,
                    beta.as_ptr().cast(),
                    addends.cast(),
                    result,
                    ldc,
                    sums.cast_mut().cast(),
                    result,
                    ldd,
                    count,
                    compute,
                    rocblas_gemm_algo::rocblas_gemm_algo_standard,
                    0,
                    rocblas_gemm_flags::rocblas_gemm_flags_none.0,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, ldd {ldd}, \
             count {count}, {input:?} to {result:?} in {compute:?}"
        )
    }
}
