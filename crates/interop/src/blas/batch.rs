use hip::Stream;

use super::apart::{Extent, span};
use super::matrix::SplitFrom;
use super::{Memory, MemoryMut, Name};
use crate::Result;

/// Equal column-major matrices at a stride: element (i, j) of matrix `b` is at `offset + b * stride + i + j * ld`.
///
/// As an input they may overlap, and with stride 0 all of them are one matrix; in an output no two share an element.
/// The call that takes them checks whether they fit the memory.
#[derive(Clone, Copy, Debug)]
pub struct Batch<M> {
    memory: M,
    offset: usize,
    rows: usize,
    cols: usize,
    ld: usize,
    stride: usize,
    count: usize,
}

impl<M> Batch<M> {
    /// `count` matrices of `rows` x `cols` elements with leading dimension `ld`, each `stride` elements after the one
    /// before. The memory needs `stride * (count - 1) + ld * (cols - 1) + rows` elements.
    #[must_use]
    pub fn new(memory: M, rows: usize, cols: usize, ld: usize, stride: usize, count: usize) -> Self {
        Self {
            memory,
            offset: 0,
            rows,
            cols,
            ld,
            stride,
            count,
        }
    }

    /// The same, from element `offset` of the memory on.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    fn span(&self) -> usize {
        span(self.rows, self.cols, self.ld, self.stride, self.count)
    }
}

impl<M: Memory> Batch<M> {
    pub(crate) fn take<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, rocblas::Batch<'s, M::Element>)>
    where
        M: 's,
    {
        let elements = self.span();
        let Self {
            memory,
            offset,
            rows,
            cols,
            ld,
            stride,
            count,
        } = self;
        let slice = memory.take(stream)?;
        let slice = name.of(slice.slice(offset..).map_err(Into::into))?;
        let batch = name.of(rocblas::Batch::new(slice, rows, cols, ld, stride, count))?;
        Ok((Extent::new(name.argument, slice.as_ptr(), elements), batch))
    }
}

impl<M: MemoryMut> Batch<M> {
    pub(crate) fn take_mut<'s>(
        self,
        name: Name,
        stream: &'s Stream,
    ) -> Result<(Extent, rocblas::BatchMut<'s, M::Element>)>
    where
        M: 's,
    {
        let elements = self.span();
        let Self {
            memory,
            offset,
            rows,
            cols,
            ld,
            stride,
            count,
        } = self;
        let slice = memory.take_mut(stream)?;
        let slice = name.of(slice.split_from(offset))?;
        let extent = Extent::new(name.argument, slice.as_slice().as_ptr(), elements);
        let batch = name.of(rocblas::BatchMut::new(slice, rows, cols, ld, stride, count))?;
        Ok((extent, batch))
    }
}
