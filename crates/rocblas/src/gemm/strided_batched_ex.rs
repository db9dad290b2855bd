use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice};
use rocblas_sys::{rocblas_gemm_algo, rocblas_gemm_flags};

use super::{products, same_count};
use crate::element::{Element, GemmInput};
use crate::operands::{BatchShape, Call, Factor, Fetch, Number, Taken};
use crate::routine::{both, call};
use crate::size::{long, shape};
use crate::{Batch, Handle, Op, Result};

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
    pub fn gemm_strided_batched_ex<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Batch<impl DeviceMemory<Element = In>>,
        b: Batch<impl DeviceMemory<Element = In>>,
        beta: impl Factor<Compute>,
        c: Batch<impl DeviceMemoryMut<Element = Out>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_strided_batched_ex";
        let sizes = products(CALL, (op_a, op_b), [a.shape(), b.shape(), c.shape()])?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let mut c = call.write("c", c)?;
        let output = Sums {
            sums: c.data.as_mut_ptr(),
            shape: c.shape,
            addends: c.as_read(),
        };
        self.mixed_strided((op_a, op_b), sizes, (&alpha, &beta), (a, b), output)
    }

    /// `d[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]`: [`Handle::gemm_strided_batched_ex`] with the sums in
    /// other matrices. `c` and `d` have one shape; how they lie may differ.
    ///
    /// # Errors
    ///
    /// A count does not fit, or as [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_strided_batched_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_strided_batched_ex_into<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Batch<impl DeviceMemory<Element = In>>,
        b: Batch<impl DeviceMemory<Element = In>>,
        beta: impl Factor<Compute>,
        c: Batch<impl DeviceMemory<Element = Out>>,
        d: Batch<impl DeviceMemoryMut<Element = Out>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_strided_batched_ex_into";
        let sizes = products(CALL, (op_a, op_b), [a.shape(), b.shape(), c.shape()])?;
        let (addends, sums) = (c.shape(), d.shape());
        let (rows, cols) = (addends.layout.rows, addends.layout.cols);
        if (sums.layout.rows, sums.layout.cols) != (rows, cols) {
            return Err(shape(CALL, "d", sums.layout, rows, cols));
        }
        same_count(CALL, "c", addends.count, ("d", sums.count))?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let c = call.read("c", c)?;
        let mut d = call.write("d", d)?;
        let output = Sums {
            sums: d.data.as_mut_ptr(),
            shape: d.shape,
            addends: c,
        };
        self.mixed_strided((op_a, op_b), sizes, (&alpha, &beta), (a, b), output)
    }

    fn mixed_strided<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        (op_a, op_b): (Op, Op),
        sizes: [usize; 4],
        (alpha, beta): (&Number<'_, Compute>, &Number<'_, Compute>),
        (a, b): (Inputs<'_, In>, Inputs<'_, In>),
        output: Sums<'_, Out>,
    ) -> Result<()> {
        let c = &output.addends;
        let [m, n, k, count] = sizes.map(long);
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let shapes = [a.shape, b.shape, c.shape, output.shape];
        let [lda, ldb, ldc, ldd] = shapes.map(|shape| long(shape.layout.ld));
        let [stride_a, stride_b, stride_c, stride_d] = shapes.map(|shape| long(shape.stride));
        let [input, result, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            alpha.mode(),
            both!(
                rocblas_gemm_strided_batched_ex,
                rocblas_gemm_strided_batched_ex_64,
                "6.3"
            ),
            (m, n, k, lda, ldb, ldc, ldd, count),
            // SAFETY: as in `gemm_ex`; no two of the sums share an element, and they are exclusive: other matrices than
            // those of `c`, or `c` itself with the same layout.
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
    addends: Inputs<'a, T>,
    sums: *mut T,
    shape: BatchShape,
}

/// Matrices that are read.
type Inputs<'a, T> = Taken<DeviceSlice<'a, T>, BatchShape>;
