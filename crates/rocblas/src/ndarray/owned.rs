use std::fmt;

use ::ndarray::{Array2, ArrayView2};
use bytemuck::Pod;
use hip::{Device, DeviceBuffer, Stream};

use crate::{Matrix, MatrixMut, Result};

/// A column-major matrix that owns its device memory, without gaps between its columns.
///
/// ```
/// # use std::sync::Arc;
/// # // SAFETY: all tables come from one platform.
/// # let (runtime, library) = unsafe {
/// #     (
/// #         hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
/// #         rocblas::Library::from_tables(Arc::new(hip_host_blas::rocblas_api()), None),
/// #     )
/// # };
/// # let device = runtime.device(0)?;
/// # let stream = device.stream()?;
/// # let blas = rocblas::Handle::new(&library, &stream)?;
/// use ndarray::array;
/// use rocblas::{DeviceMatrix, Op};
///
/// let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![[5.0, 6.0], [7.0, 8.0_f32]]);
/// // Both are row-major: one is gathered, of the other the transpose is sent as it is.
/// let left = DeviceMatrix::gathered(&stream, a.view())?;
/// let right = DeviceMatrix::from_array(&stream, b.t())?;
/// let mut product = DeviceMatrix::zeros(&device, 2, 2)?;
/// blas.gemm(
///     Op::None,
///     Op::Transpose,
///     1.0,
///     left.on(&stream)?,
///     right.on(&stream)?,
///     0.0,
///     product.on_mut(&stream)?,
/// )?;
/// assert_eq!(product.to_array(&stream)?, a.dot(&b));
/// # Ok::<(), rocblas::Error>(())
/// ```
pub struct DeviceMatrix<T> {
    buffer: DeviceBuffer<T>,
    rows: usize,
    cols: usize,
}

impl<T: Pod> DeviceMatrix<T> {
    /// `rows` x `cols` zeros.
    ///
    /// # Errors
    ///
    /// Too many elements, or HIP has no memory.
    pub fn zeros(device: &Device, rows: usize, cols: usize) -> Result<Self> {
        let buffer = device.alloc_zeroed(elements(rows, cols))?;
        Ok(Self { buffer, rows, cols })
    }

    /// A copy of an array that is column-major without gaps. Complete when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::ArrayLayout`](crate::Error::ArrayLayout) for another order of the elements, or HIP failed.
    pub fn from_array(stream: &Stream, array: ArrayView2<'_, T>) -> Result<Self> {
        let mut matrix = Self::for_array(stream, &array)?;
        matrix.on_mut(stream)?.copy_from_array(array)?;
        Ok(matrix)
    }

    /// A copy of an array with any strides, by way of host memory. Complete when it returns.
    ///
    /// # Errors
    ///
    /// HIP failed.
    pub fn gathered(stream: &Stream, array: ArrayView2<'_, T>) -> Result<Self> {
        let mut matrix = Self::for_array(stream, &array)?;
        matrix.on_mut(stream)?.gather_from_array(array)?;
        Ok(matrix)
    }

    fn for_array(stream: &Stream, array: &ArrayView2<'_, T>) -> Result<Self> {
        let (rows, cols) = array.dim();
        let buffer = stream.device().alloc(elements(rows, cols))?;
        Ok(Self { buffer, rows, cols })
    }

    /// A new column-major array with the matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// A stream of another device, or earlier work failed.
    pub fn to_array(&self, stream: &Stream) -> Result<Array2<T>> {
        self.on(stream)?.to_array()
    }
}

impl<T> DeviceMatrix<T> {
    /// Number of rows, which is the leading dimension too (1 if there are none).
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The matrix to read on `stream`, which waits for the last write.
    ///
    /// # Errors
    ///
    /// The stream is of another device, or HIP refused the wait.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Result<Matrix<'a, T>> {
        let (rows, cols) = (self.rows, self.cols);
        Matrix::new(self.buffer.on(stream)?, rows, cols, rows.max(1))
    }

    /// The matrix to write on `stream`, which waits for all use by other streams.
    ///
    /// # Errors
    ///
    /// The stream is of another device, or HIP refused the wait.
    pub fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<MatrixMut<'a, T>> {
        let (rows, cols) = (self.rows, self.cols);
        MatrixMut::new(self.buffer.on_mut(stream)?, rows, cols, rows.max(1))
    }

    /// The memory: `rows() * cols()` elements, column after column.
    #[must_use]
    pub fn into_buffer(self) -> DeviceBuffer<T> {
        self.buffer
    }
}

/// Too many saturate, and are refused as too large by the allocation.
fn elements(rows: usize, cols: usize) -> usize {
    rows.saturating_mul(cols)
}

impl<T> fmt::Debug for DeviceMatrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceMatrix")
            .field("rows", &self.rows)
            .field("cols", &self.cols)
            .field("buffer", &self.buffer)
            .finish()
    }
}
