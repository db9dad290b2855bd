use super::Batch;
use super::call::{Operand, Shape};
use crate::size::Layout;
use crate::{Error, Result};

/// A column-major matrix in some memory: element (i, j) is at `i + j * ld`, counted from the matrix's first.
///
/// It only says where the matrix lies: the call that it is given to takes the memory on its own stream, and checks. The
/// memory is a `&hip::DeviceBuffer`, a slice, or whatever else is a [`hip::DeviceMemory`]; for a matrix that the call
/// writes, it is borrowed exclusively ([`hip::DeviceMemoryMut`]), so that it can't be an input too:
///
/// ```compile_fail,E0502
/// # use rocblas::{Handle, Matrix, Op, Result};
/// fn in_place(blas: &Handle, buffer: &mut hip::DeviceBuffer<f32>) -> Result<()> {
///     let a = Matrix::new(&*buffer, 2, 2, 2);
///     let c = Matrix::new(buffer, 2, 2, 2);
///     blas.gemm(Op::None, Op::None, 1.0, a, a, 0.0, c)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[doc(alias("lda", "ldb", "ldc"))]
pub struct Matrix<M> {
    memory: M,
    first: usize,
    pub(crate) layout: Layout,
}

impl<M> Matrix<M> {
    /// `rows` x `cols` elements from the memory's first on, columns `ld` elements apart (the leading dimension, at
    /// least `rows` and 1). The memory needs `ld * (cols - 1) + rows` elements, or none if there are no rows or columns;
    /// it may have more. What lies between the columns is not touched.
    #[must_use]
    pub fn new(memory: M, rows: usize, cols: usize, ld: usize) -> Self {
        Self {
            memory,
            first: 0,
            layout: Layout { rows, cols, ld },
        }
    }

    /// The same, from element `first` of the memory on.
    #[must_use]
    pub fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// `count` such matrices, each `stride` elements after the one before. The memory needs `stride * (count - 1)`
    /// elements more.
    #[must_use]
    pub fn batch(self, stride: usize, count: usize) -> Batch<M> {
        Batch::new(self, stride, count)
    }
}

impl<M> Operand for Matrix<M> {
    type Memory = M;
    type Shape = Layout;

    fn into_parts(self) -> (M, usize, Layout) {
        (self.memory, self.first, self.layout)
    }
}

impl Shape for Layout {
    fn checked(self, _len: usize) -> Result<Self> {
        self.check().map(|()| self)
    }

    fn span(self) -> usize {
        Layout::span(self)
    }

    fn check_distinct(self) -> Result<(), Error> {
        Ok(())
    }

    fn describe(self) -> String {
        let Self { rows, cols, ld } = self;
        format!("a {rows} x {cols} matrix with leading dimension {ld}")
    }
}
