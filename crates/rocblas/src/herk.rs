use crate::call::{check, slot};
use crate::gemm::shape;
use crate::size::int;
use crate::{ComplexScalar, Error, Fill, Handle, Matrix, MatrixMut, Op, Result};

impl Handle {
    /// `c = alpha * op(a) * op(a)^H + beta * c` for a Hermitian `c`, of which only the triangle `fill` is read and written.
    ///
    /// `op(a)` is n x k, `c` is n x n. The imaginary parts of the diagonal become 0. Nothing is done if n is 0.
    ///
    /// # Errors
    ///
    /// A shape does not fit, `op` is [`Op::Transpose`] (the product would not be Hermitian), a matrix was taken for another
    /// stream, or rocBLAS refused the call.
    #[doc(alias("rocblas_cherk", "rocblas_zherk"))]
    pub fn herk<T: ComplexScalar>(
        &self,
        fill: Fill,
        op: Op,
        alpha: T::Real,
        a: Matrix<'_, T>,
        beta: T::Real,
        mut c: MatrixMut<'_, T>,
    ) -> Result<()> {
        const CALL: &str = "herk";
        self.check_stream(CALL, "a", a.data.stream())?;
        self.check_stream(CALL, "c", c.data.stream())?;
        if op == Op::Transpose {
            let found = format!("{op:?}");
            return Err(Error::Unsupported {
                call: CALL,
                argument: "op",
                found,
                expected: "None or ConjTranspose",
            });
        }
        let (n, k) = op.shape(a.layout.rows, a.layout.cols);
        if (c.layout.rows, c.layout.cols) != (n, n) {
            return Err(shape(CALL, "c", c.layout, n, n));
        }
        if n == 0 {
            return Ok(());
        }
        let (name, function) = T::herk(self.library().api());
        let function = slot(function, name)?;
        self.stream().device().make_current()?;
        // SAFETY: the handle is alive. `alpha` and `beta` are host values, read before the call returns (pointer mode host). The
        // matrices are as large as sizes and leading dimensions say, checked when they were made; they may be used on
        // the handle's stream, and `c` is exclusive.
        let status = unsafe {
            function(
                self.raw(),
                fill.raw(),
                op.raw(),
                int("n", n)?,
                int("k", k)?,
                &raw const alpha,
                a.data.as_ptr().cast(),
                int("lda", a.layout.ld)?,
                &raw const beta,
                c.data.as_mut_ptr().cast(),
                int("ldc", c.layout.ld)?,
            )
        };
        check(status, || {
            let (lda, ldc) = (a.layout.ld, c.layout.ld);
            format!("{name}({fill:?}, {op:?}, n {n}, k {k}, lda {lda}, ldc {ldc})")
        })
    }
}
