use std::ffi::c_void;

use rocblas_sys::{
    Api, rocblas_datatype, rocblas_gemm_algo, rocblas_gemm_flags, rocblas_handle, rocblas_int, rocblas_operation,
    rocblas_status,
};

use super::product;
use crate::element::{Element, GemmInput};
use crate::functions::Routine;
use crate::operands::{Factor, Fetch, check_pair};
use crate::routine::call;
use crate::size::{Layout, long, shape};
use crate::{Handle, Matrix, MatrixMut, Op, Result};

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
    rocblas_datatype,
    rocblas_gemm_algo,
    i32,
    u32,
) -> rocblas_status;

fn gemm_ex(api: &Api) -> Routine<Signature<rocblas_int>, Signature<i64>> {
    Routine {
        narrow: ("rocblas_gemm_ex", api.rocblas_gemm_ex),
        wide: ("rocblas_gemm_ex_64", api.rocblas_gemm_ex_64),
        wide_since: "6.3",
    }
}

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
    pub fn gemm_ex<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: Matrix<'_, In>,
        b: Matrix<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        mut c: MatrixMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        let (scalars, output) = ((alpha.into(), beta.into()), Sum::in_place(&mut c));
        self.mixed("gemm_ex", (op_a, op_b), scalars, (a, b), output)
    }

    /// `d = alpha * op_a(a) * op_b(b) + beta * c`: [`Handle::gemm_ex`] with the sum in another matrix. `c` and `d` have
    /// one shape; their leading dimensions may differ.
    ///
    /// # Errors
    ///
    /// As [`Handle::gemm`].
    #[doc(alias = "rocblas_gemm_ex")]
    #[expect(clippy::too_many_arguments, reason = "the field's own order of arguments")]
    pub fn gemm_ex_into<'s, In, Out, Compute>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: impl Into<Factor<'s, Compute>>,
        a: Matrix<'_, In>,
        b: Matrix<'_, In>,
        beta: impl Into<Factor<'s, Compute>>,
        c: Matrix<'_, Out>,
        mut d: MatrixMut<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        const CALL: &str = "gemm_ex_into";
        self.check_stream(CALL, "d", d.data.stream())?;
        let (Layout { rows, cols, .. }, found) = (c.layout, d.layout);
        if (found.rows, found.cols) != (rows, cols) {
            return Err(shape(CALL, "d", found, rows, cols));
        }
        let output = Sum {
            addend: c,
            sum: d.data.as_mut_ptr(),
            ld: d.layout.ld,
        };
        let scalars = (alpha.into(), beta.into());
        self.mixed(CALL, (op_a, op_b), scalars, (a, b), output)
    }

    fn mixed<In, Out, Compute>(
        &self,
        call: &'static str,
        (op_a, op_b): (Op, Op),
        (alpha, beta): (Factor<'_, Compute>, Factor<'_, Compute>),
        (a, b): (Matrix<'_, In>, Matrix<'_, In>),
        Sum { addend: c, sum, ld }: Sum<'_, Out>,
    ) -> Result<()>
    where
        In: GemmInput<Out, Compute>,
        Out: Element,
        Compute: Element,
    {
        let mode = check_pair(self, call, &alpha, &beta, Fetch::Perhaps)?;
        self.check_stream(call, "a", a.data.stream())?;
        self.check_stream(call, "b", b.data.stream())?;
        self.check_stream(call, "c", c.data.stream())?;
        let [m, n, k] = product(call, op_a, a.layout, op_b, b.layout, ("c", c.layout))?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        let [lda, ldb, ldc] = [a.layout, b.layout, c.layout].map(|layout| long(layout.ld));
        let ldd = long(ld);
        let [input, output, compute] = [In::DATATYPE, Out::DATATYPE, Compute::DATATYPE];
        call!(
            self,
            mode,
            gemm_ex,
            (m, n, k, lda, ldb, ldc, ldd),
            // SAFETY: the handle is alive. The scalars are of the type that is computed in: host values, read before
            // the call returns, or device memory to be read on the handle's stream, as the pointer mode says. The
            // matrices are of the types told, as large as sizes and leading dimensions say, checked when they were
            // made; they may be used on the handle's stream. `sum` is exclusive: another matrix than `c`, or `c` itself
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
    addend: Matrix<'a, T>,
    sum: *mut T,
    ld: usize,
}

impl<'a, T> Sum<'a, T> {
    fn in_place(matrix: &'a mut MatrixMut<'_, T>) -> Self {
        let sum = matrix.data.as_mut_ptr();
        Self {
            ld: matrix.layout.ld,
            addend: matrix.as_matrix(),
            sum,
        }
    }
}
