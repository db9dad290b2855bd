use crate::call::{check, slot};
use crate::size::{Layout, int, stride};
use crate::{Batch, BatchMut, Error, Handle, Matrix, MatrixMut, Op, Result, Scalar};

impl Handle {
    /// `c = alpha * op_a(a) * op_b(b) + beta * c`.
    ///
    /// With `op_a(a)` of m x k elements and `op_b(b)` of k x n, `c` is m x n. Nothing is done if m or n is 0; with k = 0 `c`
    /// is only scaled. If `beta` is 0, `c` need not hold numbers.
    ///
    /// # Errors
    ///
    /// A shape does not fit, a matrix was taken for another stream, or rocBLAS refused the call.
    #[doc(alias("rocblas_sgemm", "rocblas_dgemm", "rocblas_cgemm", "rocblas_zgemm"))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the field's own order of arguments"
    )]
    pub fn gemm<T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: T,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: T,
        mut c: MatrixMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "gemm";
        self.check_stream(CALL, "a", a.data.stream())?;
        self.check_stream(CALL, "b", b.data.stream())?;
        self.check_stream(CALL, "c", c.data.stream())?;
        let (m, n, k) = product(CALL, op_a, a.layout, op_b, b.layout, c.layout)?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        let (name, function) = T::gemm(self.library().api());
        let function = slot(function, name)?;
        self.stream().device().make_current()?;
        // SAFETY: the handle is alive. `alpha` and `beta` are host values, read before the call returns (pointer mode host). The
        // matrices are as large as sizes and leading dimensions say, checked when they were made; they may be used on
        // the handle's stream, and `c` is exclusive.
        let status = unsafe {
            function(
                self.raw(),
                op_a.raw(),
                op_b.raw(),
                int("m", m)?,
                int("n", n)?,
                int("k", k)?,
                (&raw const alpha).cast(),
                a.data.as_ptr().cast(),
                int("lda", a.layout.ld)?,
                b.data.as_ptr().cast(),
                int("ldb", b.layout.ld)?,
                (&raw const beta).cast(),
                c.data.as_mut_ptr().cast(),
                int("ldc", c.layout.ld)?,
            )
        };
        check(status, || {
            let (lda, ldb, ldc) = (a.layout.ld, b.layout.ld, c.layout.ld);
            format!(
                "{name}({op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc})"
            )
        })
    }

    /// `c[i] = alpha * op_a(a[i]) * op_b(b[i]) + beta * c[i]` for every matrix of the batches, which have equal counts.
    ///
    /// An input of stride 0 is used for all of them. Shapes are those of [`Handle::gemm`].
    ///
    /// # Errors
    ///
    /// A shape or count does not fit, a batch was taken for another stream, or rocBLAS refused the call.
    #[doc(alias(
        "rocblas_sgemm_strided_batched",
        "rocblas_dgemm_strided_batched",
        "rocblas_cgemm_strided_batched",
        "rocblas_zgemm_strided_batched"
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the field's own order of arguments"
    )]
    pub fn gemm_strided_batched<T: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        alpha: T,
        a: Batch<'_, T>,
        b: Batch<'_, T>,
        beta: T,
        mut c: BatchMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "gemm_strided_batched";
        self.check_stream(CALL, "a", a.data.stream())?;
        self.check_stream(CALL, "b", b.data.stream())?;
        self.check_stream(CALL, "c", c.data.stream())?;
        let (m, n, k) = product(CALL, op_a, a.layout, op_b, b.layout, c.layout)?;
        let count = c.count;
        for (argument, found) in [("a", a.count), ("b", b.count)] {
            if found != count {
                let (found, expected) = (
                    format!("a batch of {found}"),
                    format!("one of {count}, as c,"),
                );
                return Err(Error::Shape {
                    call: CALL,
                    argument,
                    found,
                    expected,
                });
            }
        }
        if m == 0 || n == 0 || count == 0 {
            return Ok(());
        }
        let (name, function) = T::gemm_strided_batched(self.library().api());
        let function = slot(function, name)?;
        self.stream().device().make_current()?;
        // SAFETY: as in `gemm`; strides and counts were checked against the slices when the batches were made, and no two
        // matrices of `c` share an element.
        let status = unsafe {
            function(
                self.raw(),
                op_a.raw(),
                op_b.raw(),
                int("m", m)?,
                int("n", n)?,
                int("k", k)?,
                (&raw const alpha).cast(),
                a.data.as_ptr().cast(),
                int("lda", a.layout.ld)?,
                stride(a.stride)?,
                b.data.as_ptr().cast(),
                int("ldb", b.layout.ld)?,
                stride(b.stride)?,
                (&raw const beta).cast(),
                c.data.as_mut_ptr().cast(),
                int("ldc", c.layout.ld)?,
                stride(c.stride)?,
                int("batch count", count)?,
            )
        };
        check(status, || {
            let (lda, ldb, ldc) = (a.layout.ld, b.layout.ld, c.layout.ld);
            let (sa, sb, sc) = (a.stride, b.stride, c.stride);
            format!(
                "{name}({op_a:?}, {op_b:?}, m {m}, n {n}, k {k}, lda {lda}, ldb {ldb}, ldc {ldc}, \
                 strides {sa}, {sb}, {sc}, count {count})"
            )
        })
    }
}

/// (m, n, k) of a product, if the shapes fit.
fn product(
    call: &'static str,
    op_a: Op,
    a: Layout,
    op_b: Op,
    b: Layout,
    c: Layout,
) -> Result<(usize, usize, usize)> {
    let (m, k) = op_a.shape(a.rows, a.cols);
    let (inner, n) = op_b.shape(b.rows, b.cols);
    if inner != k {
        let (rows, cols) = op_b.shape(k, n);
        return Err(shape(call, "b", b, rows, cols));
    }
    if (c.rows, c.cols) != (m, n) {
        return Err(shape(call, "c", c, m, n));
    }
    Ok((m, n, k))
}

pub(crate) fn shape(
    call: &'static str,
    argument: &'static str,
    found: Layout,
    rows: usize,
    cols: usize,
) -> Error {
    let found = format!("{} x {}", found.rows, found.cols);
    Error::Shape {
        call,
        argument,
        found,
        expected: format!("{rows} x {cols}"),
    }
}
