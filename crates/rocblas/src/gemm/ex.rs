use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice};
use rocblas_sys::{rocblas_gemm_algo, rocblas_gemm_flags};

use super::product;
use crate::element::{Element, GemmInput};
use crate::operands::{Call, Factor, Fetch, Number, Taken};
use crate::routine::{both, call};
use crate::size::{Layout, long, shape};
use crate::{Handle, Matrix, Op, Result};

impl Handle {
    /// `c = alpha * op_a(a) * op_b(b) + beta * c`, with elements narrower than the compute type: see [`GemmInput`] for
    /// the types. `alpha` and `beta` are of the compute type.
    ///
    /// Shapes are those of [`Handle::gemm`]. rocBLAS chooses the kernel; its solution indices and flags are not
    /// wrapped.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_ex<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Matrix<impl DeviceMemory<Element = In>>,
        b: Matrix<impl DeviceMemory<Element = In>>,
        beta: impl Factor<Compute>,
        c: Matrix<impl DeviceMemoryMut<Element = Out>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_ex";
        let sizes = product(CALL, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let mut c = call.write("c", c)?;
        let output = Sum {
            sum: c.data.as_mut_ptr(),
            ld: c.shape.ld,
            addend: c.as_read(),
        };
        self.mixed((op_a, op_b), sizes, (&alpha, &beta), (a, b), output)
    }

    /// `d = alpha * op_a(a) * op_b(b) + beta * c`: [`Handle::gemm_ex`] with the sum in another matrix. `c` and `d` have
    /// one shape; their leading dimensions may differ.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_ex_into<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Factor<Compute>,
        a: Matrix<impl DeviceMemory<Element = In>>,
        b: Matrix<impl DeviceMemory<Element = In>>,
        beta: impl Factor<Compute>,
        c: Matrix<impl DeviceMemory<Element = Out>>,
        d: Matrix<impl DeviceMemoryMut<Element = Out>>,
    ) -> Result<()> {
        const CALL: &str = "gemm_ex_into";
        let sizes = product(CALL, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        let (Layout { rows, cols, .. }, found) = (c.layout, d.layout);
        if (found.rows, found.cols) != (rows, cols) {
            return Err(shape(CALL, "d", found, rows, cols));
        }
        let mut call = Call::new(self.stream(), CALL);
        let (alpha, beta) = call.alpha_and_beta(alpha, beta, Fetch::Perhaps(self))?;
        let a = call.read("a", a)?;
        let b = call.read("b", b)?;
        let c = call.read("c", c)?;
        let mut d = call.write("d", d)?;
        let output = Sum {
            addend: c,
            sum: d.data.as_mut_ptr(),
            ld: d.shape.ld,
        };
        self.mixed((op_a, op_b), sizes, (&alpha, &beta), (a, b), output)
    }

    fn mixed<In: GemmInput<Out, Compute>, Out: Element, Compute: Element>(
        &self,
        (op_a, op_b): (Op, Op),
        sizes: [usize; 3],
        (alpha, beta): (&Number<'_, Compute>, &Number<'_, Compute>),
        (a, b): (Input<'_, In>, Input<'_, In>),
        Sum { addend: c, sum, ld }: Sum<'_, Out>,
    ) -> Result<()> {
        let [m, n, k] = sizes.map(long);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = [a.shape, b.shape, c.shape].map(|layout| long(layout.ld));
        let ldd = long(ld);
        let [input, output, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            alpha.mode(),
            both!(rocblas_gemm_ex, rocblas_gemm_ex_64, "6.3"),
            (m, n, k, lda, ldb, ldc, ldd),
            // SAFETY: the handle is alive. The scalars are of the type that is computed in: host values, read before
            // the call returns, or device memory to be read on the handle's stream, as the pointer mode says. The
            // matrices are of the types told, as large as sizes and leading dimensions say and may be used on the
            // handle's stream, as the call that took them checked. `sum` is exclusive: another matrix than `c`, or `c` itself
            // with the same layout.
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
                    b.data.as_ptr().cast(),
                    input,
                    ldb,
                    beta.as_ptr().cast(),
                    c.data.as_ptr().cast(),
                    output,
                    ldc,
                    sum.cast(),
                    output,
                    ldd,
                    compute,
                    rocblas_gemm_algo::rocblas_gemm_algo_standard,
                    0,
                    rocblas_gemm_flags::rocblas_gemm_flags_none.0,
                )
            },
            "{op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, ldd {ldd}, \
             {input:?} to {output:?} in {compute:?}"
        )
    }
}

/// What is added to a product, and where the sum goes.
struct Sum<'a, T> {
    addend: Input<'a, T>,
    sum: *mut T,
    ld: usize,
}

/// A matrix that is read.
type Input<'a, T> = Taken<DeviceSlice<'a, T>, Layout>;
