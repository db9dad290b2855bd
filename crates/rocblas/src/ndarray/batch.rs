//! Batches and arrays of three dimensions: matrices, rows, columns.

use ::ndarray::{Array3, ArrayView3, ArrayViewMut3, Axis};
use bytemuck::Pod;

use crate::size::Layout;
use crate::{Batch, BatchMut, Error, Matrix, MatrixMut, Result};

impl<T: Pod> Batch<'_, T> {
    /// Copies the batch to an array of shape (matrices, rows, columns) of which each matrix is column-major without
    /// gaps, one copy for each matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::copy_to_array`].
    pub fn copy_to_array(&self, array: ArrayViewMut3<'_, T>) -> Result<()> {
        self.each("copy_to_array", array, |matrix, part| matrix.copy_to_array(part))
    }

    /// Copies the batch to an array of shape (matrices, rows, columns) with any strides, by way of host memory.
    /// Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::scatter_to_array`].
    pub fn scatter_to_array(&self, array: ArrayViewMut3<'_, T>) -> Result<()> {
        self.each("scatter_to_array", array, |matrix, part| matrix.scatter_to_array(part))
    }

    /// A new array of shape (matrices, rows, columns) with the batch, one column-major matrix after the other. Complete
    /// when it returns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::to_array`].
    pub fn to_array(&self) -> Result<Array3<T>> {
        let Layout { rows, cols, .. } = self.layout;
        let rows_last = Array3::from_elem((self.count, cols, rows), T::zeroed());
        let mut array = rows_last.permuted_axes([0, 2, 1]);
        self.copy_to_array(array.view_mut())?;
        Ok(array)
    }

    fn each(
        &self,
        call: &'static str,
        mut array: ArrayViewMut3<'_, T>,
        mut copy: impl FnMut(Matrix<'_, T>, ::ndarray::ArrayViewMut2<'_, T>) -> Result<()>,
    ) -> Result<()> {
        same_shape(call, self.count, self.layout, array.dim())?;
        if self.layout.span() == 0 {
            return Ok(());
        }
        for (index, part) in array.axis_iter_mut(Axis(0)).enumerate() {
            let Layout { rows, cols, ld } = self.layout;
            let data = self.data.slice(index * self.stride..)?;
            copy(Matrix::new(data, rows, cols, ld)?, part)?;
        }
        Ok(())
    }
}

impl<T: Pod> BatchMut<'_, T> {
    /// Copies an array of shape (matrices, rows, columns) of which each matrix is column-major without gaps, one copy
    /// for each matrix. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`MatrixMut::copy_from_array`].
    pub fn copy_from_array(&mut self, array: ArrayView3<'_, T>) -> Result<()> {
        self.each("copy_from_array", array, |mut matrix, part| {
            matrix.copy_from_array(part)
        })
    }

    /// Copies an array of shape (matrices, rows, columns) with any strides, by way of host memory. Complete when it
    /// returns.
    ///
    /// # Errors
    ///
    /// As [`MatrixMut::gather_from_array`].
    pub fn gather_from_array(&mut self, array: ArrayView3<'_, T>) -> Result<()> {
        self.each("gather_from_array", array, |mut matrix, part| {
            matrix.gather_from_array(part)
        })
    }

    fn each(
        &mut self,
        call: &'static str,
        array: ArrayView3<'_, T>,
        mut copy: impl FnMut(MatrixMut<'_, T>, ::ndarray::ArrayView2<'_, T>) -> Result<()>,
    ) -> Result<()> {
        same_shape(call, self.count, self.layout, array.dim())?;
        if self.layout.span() == 0 {
            return Ok(());
        }
        for (index, part) in array.axis_iter(Axis(0)).enumerate() {
            let Layout { rows, cols, ld } = self.layout;
            let data = self.data.slice_mut(index * self.stride..)?;
            copy(MatrixMut::new(data, rows, cols, ld)?, part)?;
        }
        Ok(())
    }
}

fn same_shape(call: &'static str, count: usize, layout: Layout, array: (usize, usize, usize)) -> Result<()> {
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
