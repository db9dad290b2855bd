use std::ffi::c_void;

use rocblas_sys::{
    Api, rocblas_datatype, rocblas_gemm_algo, rocblas_gemm_flags, rocblas_handle, rocblas_int, rocblas_operation,
    rocblas_status, rocblas_stride,
};

use super::{product, same_count};
use crate::element::{Element, GemmInput};
use crate::functions::Routine;
use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Batch, BatchMut, Handle, Op, Result};

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
    rocblas_stride,
    *const c_void,
    rocblas_datatype,
    I,
    rocblas_stride,
    *const c_void,
    *const c_void,
    rocblas_datatype,
    I,
    rocblas_stride,
    *mut c_void,
    rocblas_datatype,
    I,
    rocblas_stride,
    I,
    rocblas_datatype,
    rocblas_gemm_algo,
    i32,
    u32,
) -> rocblas_status;

fn gemm_strided_batched_ex(api: &Api) -> Routine<Signature<rocblas_int>, Signature<i64>> {
    Routine {
        narrow: ("rocblas_gemm_strided_batched_ex", api.rocblas_gemm_strided_batched_ex),
        wide: (
            "rocblas_gemm_strided_batched_ex_64",
            api.rocblas_gemm_strided_batched_ex_64,
        ),
        wide_since: "6.3",
    }
}

impl Handle {
    /// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for every matrix of the batches, which have equal counts,
    /// with elements narrower than the compute type: see [`GemmInput`] for the types.
    ///
    /// Shapes are those of [`Handle::gemm`].
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_strided_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_strided_batched_ex<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: Batch<'_, In>,
        b: Batch<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        mut c: BatchMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        const CALL: &str = "gemm_strided_batched_ex";
        let sums = c.data.as_mut_ptr();
        let output = Sums {
            sums,
            layout: c.layout,
            stride: c.stride,
            addends: c.as_batch(),
        };
        let scalars = (alpha.into(), beta.into());
        self.mixed_strided(CALL, (op_a, op_b), scalars, (a, b), output)
    }

    /// `d[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]`: [`Handle::gemm_strided_batched_ex`] with the sums in
    /// other matrices. `c` and `d` have one shape; how they lie may differ.
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_strided_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_strided_batched_ex_into<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: Batch<'_, In>,
        b: Batch<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        c: Batch<'_, Out>,
        mut d: BatchMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        const CALL: &str = "gemm_strided_batched_ex_into";
        self.check_stream(CALL, "d", d.data.stream())?;
        same_count(CALL, "c", c.count, ("d", d.count))?;
        let output = Sums {
            sums: d.data.as_mut_ptr(),
            layout: d.layout,
            stride: d.stride,
            addends: c,
        };
        let scalars = (alpha.into(), beta.into());
        self.mixed_strided(CALL, (op_a, op_b), scalars, (a, b), output)
    }

    fn mixed_strided<In, Out, Compute>(
        &self,
        call: &'static str,
        (op_a, op_b): (Op, Op),
        (alpha, beta): (Factor<'_, Compute>, Factor<'_, Compute>),
        (a, b): (Batch<'_, In>, Batch<'_, In>),
        output: Sums<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        let c = &output.addends;
        let mode = check_pair(self, call, &alpha, &beta, Fetch::Perhaps)?;
        self.check_stream(call, "a", a.data.stream())?;
        self.check_stream(call, "b", b.data.stream())?;
        self.check_stream(call, "c", c.data.stream())?;
        let [m, n, k] = product(call, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        let Layout { rows, cols, ld } = output.layout;
        if (rows, cols) != (c.layout.rows, c.layout.cols) {
            return Err(shape(call, "d", output.layout, c.layout.rows, c.layout.cols));
        }
        same_count(call, "a", a.count, ("c", c.count))?;
        same_count(call, "b", b.count, ("c", c.count))?;
        let count = long(c.count);
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc, ldd] = [a.layout.ld, b.layout.ld, c.layout.ld, ld].map(long);
        let [stride_a, stride_b, stride_c, stride_d] = [a.stride, b.stride, c.stride, output.stride].map(long);
        let [input, result, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            mode,
            gemm_strided_batched_ex,
            (m, n, k, lda, ldb, ldc, ldd, count),
            // SAFETY: as in `gemm_ex`; strides and counts were checked against the slices when the batches were made.
            // No two of the sums share an element, and they are exclusive: other matrices than those of `c`, or `c`
            // itself with the same layout.
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
                    input,
                    lda,
                    stride_a,
                    b.data.as_ptr().cast(),
                    input,
                    ldb,
                    stride_b,
                    beta.as_ptr().cast(),
                    c.data.as_ptr().cast(),
                    result,
                    ldc,
                    stride_c,
                    output.sums.cast(),
                    result,
                    ldd,
                    stride_d,
                    count,
                    compute,
                    rocblas_gemm_algo::rocblas_gemm_algo_standard,
                    0,
                    rocblas_gemm_flags::rocblas_gemm_flags_none.0,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, ldd {ldd}, \
             strides {stride_a}, {stride_b}, {stride_c}, {stride_d}, count {count}, {input:?} to {result:?} in {compute:?}"
        )
    }
}

/// What is added to the products, and where the sums go.
struct Sums<'a, T> {
    addends: Batch<'a, T>,
    sums: *mut T,
    layout: Layout,
    stride: usize,
}
