use hip::Stream;

use super::apart::{Extent, span};
use super::{Memory, MemoryMut, Name};
use crate::Result;

/// A column-major matrix somewhere in memory: element (i, j) is at `offset + i + j * ld`.
///
/// The call that takes it checks whether it fits the memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<M> {
    memory: M,
    offset: usize,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl<M> Matrix<M> {
    /// `rows` x `cols` elements from the memory's first on, columns `ld` elements apart (the leading dimension, at
    /// least `rows` and 1). The memory needs `ld * (cols - 1) + rows` elements.
    #[must_use]
    pub fn new(memory: M, rows: usize, cols: usize, ld: usize) -> Self {
        Self {
            memory,
            offset: 0,
            rows,
            cols,
            ld,
        }
    }

    /// The same, from element `offset` of the memory on.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }
}

impl<M: Memory> Matrix<M> {
    pub(crate) fn take<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, rocblas::Matrix<'s, M::Element>)>
    where
        M: 's,
    {
        let Self {
            memory,
            offset,
            rows,
            cols,
            ld,
        } = self;
        let slice = memory.take(stream)?;
        let slice = name.of(slice.slice(offset..).map_err(Into::into))?;
        let matrix = name.of(rocblas::Matrix::new(slice, rows, cols, ld))?;
        let elements = span(rows, cols, ld, 0, 1);
        Ok((Extent::new(name.argument, slice.as_ptr(), elements), matrix))
    }
}

impl<M: MemoryMut> Matrix<M> {
    pub(crate) fn take_mut<'s>(
        self,
        name: Name,
        stream: &'s Stream,
    ) -> Result<(Extent, rocblas::MatrixMut<'s, M::Element>)>
    where
        M: 's,
    {
        let Self {
            memory,
            offset,
            rows,
            cols,
            ld,
        } = self;
        let slice = memory.take_mut(stream)?;
        let slice = name.of(slice.split_from(offset))?;
        let elements = span(rows, cols, ld, 0, 1);
        let extent = Extent::new(name.argument, slice.as_slice().as_ptr(), elements);
        let matrix = name.of(rocblas::MatrixMut::new(slice, rows, cols, ld))?;
        Ok((extent, matrix))
    }
}

/// What lies behind the offset.
pub(super) trait SplitFrom: Sized {
    fn split_from(self, offset: usize) -> rocblas::Result<Self>;
}

impl<T> SplitFrom for hip::DeviceSliceMut<'_, T> {
    fn split_from(self, offset: usize) -> rocblas::Result<Self> {
        Ok(self.split_at_mut(offset)?.1)
    }
}
