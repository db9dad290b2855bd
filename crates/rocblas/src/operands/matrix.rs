use hip::{DeviceSlice, DeviceSliceMut};

use crate::size::Layout;
use crate::{Error, Result};

/// A column-major matrix in device memory, to be read.
///
/// An output is borrowed exclusively, so it cannot be an input too:
///
/// ```compile_fail,E0502
/// # use rocblas::{Handle, Matrix, MatrixMut, Op, Result};
/// fn in_place(blas: &Handle, buffer: &mut hip::DeviceBuffer<f32>, stream: &hip::Stream) -> Result<()> {
///     let a = Matrix::new(buffer.on(stream)?, 2, 2, 2)?;
///     let c = MatrixMut::new(buffer.on_mut(stream)?, 2, 2, 2)?;
///     blas.gemm(Op::None, Op::None, 1.0, a, a, 0.0, c)
/// }
/// ```
#[derive(Debug)]
pub struct Matrix<'a, T> {
    pub(crate) data: DeviceSlice<'a, T>,
    pub(crate) layout: Layout,
}

/// A column-major matrix in device memory, to be read and written.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    pub(crate) data: DeviceSliceMut<'a, T>,
    pub(crate) layout: Layout,
}

impl<T> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<'_, T> {}

impl<'a, T> Matrix<'a, T> {
    /// `rows` x `cols` elements, columns `ld` elements apart (the leading dimension).
    ///
    /// The slice needs `ld * (cols - 1) + rows` elements, or none if there are no rows or columns; it may have more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, the slice is too short, or a size does not fit 64 bits.
    pub fn new(data: DeviceSlice<'a, T>, rows: usize, cols: usize, ld: usize) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        long_enough(layout, data.len())?;
        Ok(Self { data, layout })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Elements from one column to the next.
    #[must_use]
    #[doc(alias("lda", "ldb", "ldc"))]
    pub fn ld(&self) -> usize {
        self.layout.ld
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> DeviceSlice<'a, T> {
        self.data
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// `rows` x `cols` elements, columns `ld` elements apart (the leading dimension). What lies between the columns is
    /// not touched.
    ///
    /// The slice needs `ld * (cols - 1) + rows` elements, or none if there are no rows or columns; it may have more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, the slice is too short, or a size does not fit 64 bits.
    pub fn new(data: DeviceSliceMut<'a, T>, rows: usize, cols: usize, ld: usize) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        long_enough(layout, data.len())?;
        Ok(Self { data, layout })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Elements from one column to the next.
    #[must_use]
    #[doc(alias = "ldc")]
    pub fn ld(&self) -> usize {
        self.layout.ld
    }

    /// The same matrix to read, for as long as this one is not used otherwise.
    #[must_use]
    pub fn as_matrix(&self) -> Matrix<'_, T> {
        Matrix {
            data: self.data.as_slice(),
            layout: self.layout,
        }
    }

    /// The same matrix for a shorter time, to pass on without losing this one.
    #[must_use]
    pub fn reborrow(&mut self) -> MatrixMut<'_, T> {
        MatrixMut {
            data: self.data.reborrow(),
            layout: self.layout,
        }
    }
}

#[inline]
fn long_enough(layout: Layout, len: usize) -> Result<()> {
    let needed = layout.span();
    if needed <= len {
        return Ok(());
    }
    let Layout { rows, cols, ld } = layout;
    Err(Error::TooShort {
        what: format!("a {rows} x {cols} matrix with leading dimension {ld}"),
        needed,
        len,
    })
}
