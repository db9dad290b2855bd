//! Arrays of the crate `ndarray` to and from matrices in device memory.
//!
//! A matrix here is column-major, an `ndarray` array row-major by default. So there are two ways:
//!
//! | | arrays | what it costs |
//! |---|---|---|
//! | [`Matrix::copy_from_array`], [`Matrix::copy_to_array`] | column-major without gaps, others are refused | one copy between host and device |
//! | [`Matrix::gather_from_array`], [`Matrix::scatter_to_array`] | any | a second pass through host memory, element by element |
//!
//! A row-major array needs no second pass either if its *transpose* will do: `array.t()` is column-major, and
//! [`Op::Transpose`](crate::Op::Transpose) turns it back in a product or a solve.

mod batch;
mod owned;

use ::ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder};
use bytemuck::Pod;
use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Rect, Stream};
pub use owned::DeviceMatrix;

use crate::operands::{Call, Taken};
use crate::size::Layout;
use crate::{Error, Matrix, Result};

impl<T: Pod, M: DeviceMemory<Element = T>> Matrix<M> {
    /// Copies the matrix to an array of the same shape that is column-major without gaps. Complete when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::ArrayLayout`] for another order of the elements, a matrix that does not fit its memory,
    /// memory that the stream can't use or HIP may not copy, or earlier work of the stream failed.
    pub fn copy_to_array(self, stream: &Stream, array: ArrayViewMut2<'_, T>) -> Result<()> {
        const CALL: &str = "copy_to_array";
        same_shape(CALL, self.layout, array.dim())?;
        Call::new(stream, CALL).read("matrix", self)?.copy_to_array(array)
    }

    /// Copies the matrix to an array of the same shape with any strides: to host memory first, and from there element
    /// by element. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_to_array`], but for the order of the elements.
    pub fn scatter_to_array(self, stream: &Stream, array: ArrayViewMut2<'_, T>) -> Result<()> {
        const CALL: &str = "scatter_to_array";
        same_shape(CALL, self.layout, array.dim())?;
        Call::new(stream, CALL).read("matrix", self)?.scatter_to_array(array)
    }

    /// A new column-major array with the matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_to_array`], but for array and shape.
    pub fn to_array(self, stream: &Stream) -> Result<Array2<T>> {
        let matrix = Call::new(stream, "to_array").read("matrix", self)?;
        let mut array = column_major(matrix.shape);
        matrix.copy_to_array(array.view_mut())?;
        Ok(array)
    }
}

impl<T: Pod, M: DeviceMemoryMut<Element = T>> Matrix<M> {
    /// Copies an array of the same shape that is column-major without gaps. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_to_array`].
    pub fn copy_from_array(self, stream: &Stream, array: ArrayView2<'_, T>) -> Result<()> {
        const CALL: &str = "copy_from_array";
        same_shape(CALL, self.layout, array.dim())?;
        Call::new(stream, CALL).write("matrix", self)?.copy_from_array(array)
    }

    /// Copies an array of the same shape with any strides: element by element to host memory, and from there to the
    /// device. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_from_array`], but for the order of the elements.
    pub fn gather_from_array(self, stream: &Stream, array: ArrayView2<'_, T>) -> Result<()> {
        const CALL: &str = "gather_from_array";
        same_shape(CALL, self.layout, array.dim())?;
        Call::new(stream, CALL).write("matrix", self)?.gather_from_array(array)
    }
}

/// Of arrays of the same shape.
impl<T: Pod> Taken<DeviceSlice<'_, T>, Layout> {
    fn copy_to_array(&self, array: ArrayViewMut2<'_, T>) -> Result<()> {
        let refused = wrong_order("copy_to_array", &array.view(), "scatter_to_array");
        let elements = array.reversed_axes().into_slice().ok_or(refused)?;
        let Layout { rows, cols, ld } = self.shape;
        let rect = Rect {
            width: rows,
            height: cols,
            source_pitch: ld,
            destination_pitch: rows,
        };
        Ok(self.data.copy_rect_to_slice(elements, rect)?)
    }

    fn scatter_to_array(&self, mut array: ArrayViewMut2<'_, T>) -> Result<()> {
        let mut packed = column_major(self.shape);
        self.copy_to_array(packed.view_mut())?;
        array.assign(&packed);
        Ok(())
    }
}

/// Of arrays of the same shape.
impl<T: Pod> Taken<DeviceSliceMut<'_, T>, Layout> {
    fn copy_from_array(&mut self, array: ArrayView2<'_, T>) -> Result<()> {
        match array.t().to_slice() {
            Some(elements) => self.copy_packed(elements),
            None => Err(wrong_order("copy_from_array", &array, "gather_from_array")),
        }
    }

    fn gather_from_array(&mut self, array: ArrayView2<'_, T>) -> Result<()> {
        let packed: Vec<T> = array.t().iter().copied().collect();
        self.copy_packed(&packed)
    }

    fn copy_packed(&mut self, elements: &[T]) -> Result<()> {
        let Layout { rows, cols, ld } = self.shape;
        let rect = Rect {
            width: rows,
            height: cols,
            source_pitch: rows,
            destination_pitch: ld,
        };
        Ok(self.data.copy_rect_from_slice(elements, rect)?)
    }
}

fn column_major<T: Pod>(Layout { rows, cols, .. }: Layout) -> Array2<T> {
    Array2::from_elem((rows, cols).f(), T::zeroed())
}

fn same_shape(call: &'static str, layout: Layout, array: (usize, usize)) -> Result<()> {
    let Layout { rows, cols, .. } = layout;
    if array == (rows, cols) {
        return Ok(());
    }
    Err(Error::Shape {
        call,
        argument: "array",
        found: format!("{} x {}", array.0, array.1),
        expected: format!("{rows} x {cols}, as the matrix,"),
    })
}

fn wrong_order<T>(call: &'static str, array: &ArrayView2<'_, T>, instead: &'static str) -> Error {
    Error::ArrayLayout {
        call,
        shape: array.shape().to_vec(),
        strides: array.strides().to_vec(),
        instead,
    }
}
