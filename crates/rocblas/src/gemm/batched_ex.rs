use std::ffi::c_void;

use rocblas_sys::{
    Api, rocblas_datatype, rocblas_gemm_algo, rocblas_gemm_flags, rocblas_handle, rocblas_int, rocblas_operation,
    rocblas_status,
};

use super::{product, same_count};
use crate::element::{Element, GemmInput};
use crate::functions::Routine;
use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Handle, Op, PointerBatch, PointerBatchMut, Result};

type Signature<I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const c_void,
    *const c_void,
    rocblas_datatype,
    I,
    *const c_void,
    rocblas_datatype,
    I,
    *const c_void,
    *const c_void,
    rocblas_datatype,
    I,
    *mut c_void,
    rocblas_datatype,
    I,
    I,
    rocblas_datatype,
    rocblas_gemm_algo,
    i32,
    u32,
) -> rocblas_status;

fn gemm_batched_ex(api: &Api) -> Routine<Signature<rocblas_int>, Signature<i64>> {
    Routine {
        narrow: ("rocblas_gemm_batched_ex", api.rocblas_gemm_batched_ex),
        wide: ("rocblas_gemm_batched_ex_64", api.rocblas_gemm_batched_ex_64),
        wide_since: "6.3",
    }
}

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
    pub fn gemm_batched_ex<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: &PointerBatch<'_, In>,
        b: &PointerBatch<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        c: &mut PointerBatchMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        const CALL: &str = "gemm_batched_ex";
        self.check_stream(CALL, "c", c.stream())?;
        let sums = c.addresses()?;
        let output = Sums {
            addends: sums.cast(),
            sums,
            layouts: [c.layout(); 2],
            count: c.count(),
        };
        let scalars = (alpha.into(), beta.into());
        self.mixed_pointers(CALL, (op_a, op_b), scalars, (a, b), output)
    }

    /// `d[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]`: [`Handle::gemm_batched_ex`] with the sums in other
    /// matrices. `c` and `d` have one shape; how they lie may differ.
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_batched_ex_into<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: &PointerBatch<'_, In>,
        b: &PointerBatch<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        c: &PointerBatch<'_, Out>,
        d: &mut PointerBatchMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        const CALL: &str = "gemm_batched_ex_into";
        self.check_stream(CALL, "c", c.stream())?;
        self.check_stream(CALL, "d", d.stream())?;
        same_count(CALL, "c", c.count(), ("d", d.count()))?;
        let output = Sums {
            addends: c.addresses()?,
            sums: d.addresses()?,
            layouts: [c.layout(), d.layout()],
            count: d.count(),
        };
        let scalars = (alpha.into(), beta.into());
        self.mixed_pointers(CALL, (op_a, op_b), scalars, (a, b), output)
    }

    fn mixed_pointers<In, Out, Compute>(
        &self,
        call: &'static str,
        (op_a, op_b): (Op, Op),
        (alpha, beta): (Factor<'_, Compute>, Factor<'_, Compute>),
        (a, b): (&PointerBatch<'_, In>, &PointerBatch<'_, In>),
        output: Sums<Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        let mode = check_pair(self, call, &alpha, &beta, Fetch::Perhaps)?;
        self.check_stream(call, "a", a.stream())?;
        self.check_stream(call, "b", b.stream())?;
        let [layout_c, layout_d] = output.layouts;
        let [m, n, k] = product(call, op_a, a.layout(), op_b, b.layout(), ("c", layout_c))?;
        if (layout_d.rows, layout_d.cols) != (layout_c.rows, layout_c.cols) {
            return Err(shape(call, "d", layout_d, layout_c.rows, layout_c.cols));
        }
        same_count(call, "a", a.count(), ("c", output.count))?;
        same_count(call, "b", b.count(), ("c", output.count))?;
        let count = long(output.count);
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc, ldd] = [a.layout(), b.layout(), layout_c, layout_d].map(|layout| long(layout.ld));
        let (a, b) = (a.addresses()?, b.addresses()?);
        let [input, result, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            mode,
            gemm_batched_ex,
            (m, n, k, lda, ldb, ldc, ldd, count),
            // SAFETY: as in `gemm_ex`; the arrays hold `count` addresses each, of matrices of these layouts that may be
            // used on the handle's stream. No two of the sums share an element, and they are exclusive: other matrices
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
                    output.addends.cast(),
                    result,
                    ldc,
                    output.sums.cast_mut().cast(),
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

/// What is added to the products, and where the sums go: arrays of addresses.
struct Sums<T> {
    addends: *const *const T,
    sums: *const *mut T,
    layouts: [Layout; 2],
    count: usize,
}
