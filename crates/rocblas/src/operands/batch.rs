use super::Matrix;
use super::call::{Operand, Shape};
use crate::size::{Layout, size};
use crate::{Error, Result};

/// Equal column-major matrices in some memory, each `stride` elements after the one before. Made by [`Matrix::batch`].
///
/// Those of an input may overlap; with stride 0 all of them are the same matrix. Of an output no two share an element.
/// They may be interleaved, though: with columns far enough apart (the leading dimension), the columns of one matrix may
/// lie between those of another.
#[derive(Debug, Clone, Copy)]
#[doc(alias("strided_batched", "batch_count"))]
pub struct Batch<M> {
    matrix: Matrix<M>,
    stride: usize,
    count: usize,
}

/// How the matrices of a batch lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchShape {
    pub(crate) layout: Layout,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl<M> Batch<M> {
    pub(super) fn new(matrix: Matrix<M>, stride: usize, count: usize) -> Self {
        Self { matrix, stride, count }
    }

    pub(crate) fn shape(&self) -> BatchShape {
        BatchShape {
            layout: self.matrix.layout,
            stride: self.stride,
            count: self.count,
        }
    }
}

/// A batch of one.
impl<M> From<Matrix<M>> for Batch<M> {
    fn from(matrix: Matrix<M>) -> Self {
        Self::new(matrix, 0, 1)
    }
}

impl<M> Operand for Batch<M> {
    type Memory = M;
    type Shape = BatchShape;

    fn into_parts(self) -> (M, usize, BatchShape) {
        let shape = self.shape();
        let (memory, first, _) = self.matrix.into_parts();
        (memory, first, shape)
    }
}

impl Shape for BatchShape {
    fn checked(self, len: usize) -> Result<Self> {
        let layout = self.layout.checked(len)?;
        size("batch count", self.count)?;
        size("stride", self.stride)?;
        Ok(Self { layout, ..self })
    }

    fn span(self) -> usize {
        self.layout.batch_span(self.stride, self.count).unwrap_or(usize::MAX)
    }

    fn check_distinct(self) -> Result<()> {
        let Self { layout, stride, count } = self;
        let Some(second) = layout.first_overlap(stride, count) else {
            return Ok(());
        };
        let Layout { rows, cols, ld } = layout;
        Err(Error::Overlap {
            first: 0,
            second,
            stride,
            rows,
            cols,
            ld,
        })
    }

    fn describe(self) -> String {
        let Self { layout, stride, count } = self;
        let Layout { rows, cols, ld } = layout;
        format!("a batch of {count} {rows} x {cols} matrices with leading dimension {ld} and stride {stride}")
    }
}
