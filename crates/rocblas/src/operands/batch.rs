use hip::{DeviceSlice, DeviceSliceMut};

use crate::size::{Layout, size};
use crate::{Error, Matrix, MatrixMut, Result};

/// Equal column-major matrices in device memory, each `stride` elements after the one before, to be read.
///
/// They may overlap; with stride 0 all of them are the same matrix.
#[derive(Debug)]
pub struct Batch<'a, T> {
    pub(crate) data: DeviceSlice<'a, T>,
    pub(crate) layout: Layout,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

/// Equal column-major matrices in device memory, each `stride` elements after the one before, to be read and written.
///
/// No two of them share an element. They may be interleaved, though: with columns far enough apart (the leading
/// dimension), the columns of one matrix may lie between those of another.
#[derive(Debug)]
pub struct BatchMut<'a, T> {
    pub(crate) data: DeviceSliceMut<'a, T>,
    pub(crate) layout: Layout,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl<T> Clone for Batch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Batch<'_, T> {}

impl<'a, T> Batch<'a, T> {
    /// `count` matrices of `rows` x `cols` with leading dimension `ld`.
    ///
    /// The slice needs `stride * (count - 1) + ld * (cols - 1) + rows` elements, or none if a size is 0; it may have
    /// more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, the slice is too short, or a size does not fit 64 bits.
    pub fn new(
        data: DeviceSlice<'a, T>,
        rows: usize,
        cols: usize,
        ld: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        long_enough(layout, stride, count, data.len())?;
        Ok(Self {
            data,
            layout,
            stride,
            count,
        })
    }

    /// Rows of each matrix.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Columns of each matrix.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Elements from one column to the next.
    #[must_use]
    pub fn ld(&self) -> usize {
        self.layout.ld
    }

    /// Elements from one matrix to the next.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of matrices.
    #[must_use]
    #[doc(alias = "batch_count")]
    pub fn count(&self) -> usize {
        self.count
    }
}

impl<'a, T> BatchMut<'a, T> {
    /// `count` matrices of `rows` x `cols` with leading dimension `ld`.
    ///
    /// The slice needs `stride * (count - 1) + ld * (cols - 1) + rows` elements, or none if a size is 0; it may have
    /// more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, the slice is too short, a size does not fit 64 bits, or two matrices
    /// share an element.
    pub fn new(
        data: DeviceSliceMut<'a, T>,
        rows: usize,
        cols: usize,
        ld: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        long_enough(layout, stride, count, data.len())?;
        if let Some(second) = layout.first_overlap(stride, count) {
            return Err(Error::Overlap {
                first: 0,
                second,
                stride,
                rows,
                cols,
                ld,
            });
        }
        Ok(Self {
            data,
            layout,
            stride,
            count,
        })
    }

    /// Rows of each matrix.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Columns of each matrix.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Elements from one column to the next.
    #[must_use]
    pub fn ld(&self) -> usize {
        self.layout.ld
    }

    /// Elements from one matrix to the next.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of matrices.
    #[must_use]
    #[doc(alias = "batch_count")]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The same batch to read, for as long as this one is not used otherwise.
    #[must_use]
    pub fn as_batch(&self) -> Batch<'_, T> {
        Batch {
            data: self.data.as_slice(),
            layout: self.layout,
            stride: self.stride,
            count: self.count,
        }
    }

    /// The same batch for a shorter time, to pass on without losing this one.
    #[must_use]
    pub fn reborrow(&mut self) -> BatchMut<'_, T> {
        BatchMut {
            data: self.data.reborrow(),
            layout: self.layout,
            stride: self.stride,
            count: self.count,
        }
    }
}

/// A batch of one.
impl<'a, T> From<Matrix<'a, T>> for Batch<'a, T> {
    fn from(matrix: Matrix<'a, T>) -> Self {
        Self {
            data: matrix.data,
            layout: matrix.layout,
            stride: 0,
            count: 1,
        }
    }
}

/// A batch of one.
impl<'a, T> From<MatrixMut<'a, T>> for BatchMut<'a, T> {
    fn from(matrix: MatrixMut<'a, T>) -> Self {
        Self {
            data: matrix.data,
            layout: matrix.layout,
            stride: 0,
            count: 1,
        }
    }
}

fn long_enough(layout: Layout, distance: usize, count: usize, len: usize) -> Result<()> {
    size("batch count", count)?;
    size("stride", distance)?;
    let needed = layout.batch_span(distance, count).unwrap_or(usize::MAX);
    if needed <= len {
        return Ok(());
    }
    let Layout { rows, cols, ld } = layout;
    let what = format!("a batch of {count} {rows} x {cols} matrices with leading dimension {ld} and stride {distance}");
    Err(Error::TooShort { what, needed, len })
}
