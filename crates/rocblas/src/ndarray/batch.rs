//! Batches and arrays of three dimensions: matrices, rows, columns.

use ::ndarray::{Array3, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};
use bytemuck::Pod;
use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};

use crate::operands::{BatchShape, Call, Taken};
use crate::size::Layout;
use crate::{Batch, Error, Result};

impl<T: Pod, M: DeviceMemory<Element = T>> Batch<M> {
    /// Copies the batch to an array of shape (matrices, rows, columns) of which each matrix is column-major without
    /// gaps, one copy for each matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_to_array`](crate::Matrix::copy_to_array).
    pub fn copy_to_array(self, stream: &Stream, array: ArrayViewMut3<'_, T>) -> Result<()> {
        self.read_each("copy_to_array", stream, array, |matrix, part| {
            matrix.copy_to_array(part)
        })
    }

    /// Copies the batch to an array of shape (matrices, rows, columns) with any strides, by way of host memory.
    /// Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::scatter_to_array`](crate::Matrix::scatter_to_array).
    pub fn scatter_to_array(self, stream: &Stream, array: ArrayViewMut3<'_, T>) -> Result<()> {
        self.read_each("scatter_to_array", stream, array, |matrix, part| {
            matrix.scatter_to_array(part)
        })
    }

    /// A new array of shape (matrices, rows, columns) with the batch, one column-major matrix after the other. Complete
    /// when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::to_array`](crate::Matrix::to_array).
    pub fn to_array(self, stream: &Stream) -> Result<Array3<T>> {
        // The memory is asked first: the shape is only what the caller said.
        let batch = Call::new(stream, "to_array").read("batch", self)?;
        let BatchShape { layout, count, .. } = batch.shape;
        let rows_last = Array3::from_elem((count, layout.cols, layout.rows), T::zeroed());
        let mut array = rows_last.permuted_axes([0, 2, 1]);
        copy_each(batch, array.view_mut(), |matrix, part| matrix.copy_to_array(part))?;
        Ok(array)
    }

    fn read_each(
        self,
        call: &'static str,
        stream: &Stream,
        array: ArrayViewMut3<'_, T>,
        copy: impl Fn(Taken<DeviceSlice<'_, T>, Layout>, ArrayViewMut2<'_, T>) -> Result<()>,
    ) -> Result<()> {
        same_shape(call, self.shape(), array.dim())?;
        copy_each(Call::new(stream, call).read("batch", self)?, array, copy)
    }
}

/// Calls `copy` with each matrix of a batch and its part of an array of the batch's shape.
fn copy_each<T: Pod>(
    batch: Taken<DeviceSlice<'_, T>, BatchShape>,
    mut array: ArrayViewMut3<'_, T>,
    copy: impl Fn(Taken<DeviceSlice<'_, T>, Layout>, ArrayViewMut2<'_, T>) -> Result<()>,
) -> Result<()> {
    let Taken { data, shape } = batch;
    if shape.layout.span() == 0 {
        return Ok(());
    }
    for (index, part) in array.axis_iter_mut(Axis(0)).enumerate() {
        let matrix = Taken {
            data: data.slice(index * shape.stride..)?,
            shape: shape.layout,
        };
        copy(matrix, part)?;
    }
    Ok(())
}

impl<T: Pod, M: DeviceMemoryMut<Element = T>> Batch<M> {
    /// Copies an array of shape (matrices, rows, columns) of which each matrix is column-major without gaps, one copy
    /// for each matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_from_array`](crate::Matrix::copy_from_array).
    pub fn copy_from_array(self, stream: &Stream, array: ArrayView3<'_, T>) -> Result<()> {
        self.write_each("copy_from_array", stream, array, |mut matrix, part| {
            matrix.copy_from_array(part)
        })
    }

    /// Copies an array of shape (matrices, rows, columns) with any strides, by way of host memory. Complete when it
    /// returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::gather_from_array`](crate::Matrix::gather_from_array).
    pub fn gather_from_array(self, stream: &Stream, array: ArrayView3<'_, T>) -> Result<()> {
        self.write_each("gather_from_array", stream, array, |mut matrix, part| {
            matrix.gather_from_array(part)
        })
    }

    fn write_each(
        self,
        call: &'static str,
        stream: &Stream,
        array: ArrayView3<'_, T>,
        copy: impl Fn(Taken<DeviceSliceMut<'_, T>, Layout>, ArrayView2<'_, T>) -> Result<()>,
    ) -> Result<()> {
        same_shape(call, self.shape(), array.dim())?;
        let Taken { mut data, shape } = Call::new(stream, call).write("batch", self)?;
        if shape.layout.span() == 0 {
            return Ok(());
        }
        for (index, part) in array.axis_iter(Axis(0)).enumerate() {
            let matrix = Taken {
                data: data.slice_mut(index * shape.stride..)?,
                shape: shape.layout,
            };
            copy(matrix, part)?;
        }
        Ok(())
    }
}

fn same_shape(call: &'static str, batch: BatchShape, array: (usize, usize, usize)) -> Result<()> {
    let BatchShape { layout, count, .. } = batch;
    let Layout { rows, cols, .. } = layout;
    if array == (count, rows, cols) {
        return Ok(());
    }
    Err(Error::Shape {
        call,
        argument: "array",
        found: format!("{} x {} x {}", array.0, array.1, array.2),
        expected: format!("{count} x {rows} x {cols}, as the batch,"),
    })
}
