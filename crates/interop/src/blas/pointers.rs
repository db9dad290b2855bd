use std::fmt;

use hip::{DeviceSlice, Stream};
use rocblas::{PointerArray, PointerBatch, PointerBatchMut};

use super::apart::{Extent, span};
use super::{Memory, MemoryMut, Name};
use crate::Result;
use crate::meter::{Category, Scope};

/// Where equal column-major matrices begin in one memory, in any order: the batches of pointers of rocBLAS and
/// rocSOLVER.
///
/// The library wants an array of addresses in device memory. The first call that uses the offsets makes it (a copy of 8
/// bytes for each matrix, counted as [`Category::Control`], which waits for the stream), and later calls reuse it while
/// the memory stays in place: make one of these for each buffer and keep it.
pub struct Offsets<T> {
    offsets: Vec<usize>,
    rows: usize,
    cols: usize,
    ld: usize,
    array: Option<PointerArray<T>>,
}

/// Matrices at some [`Offsets`] of a memory.
#[derive(Debug)]
pub struct Pointers<'o, T, M> {
    offsets: &'o mut Offsets<T>,
    memory: M,
}

impl<T> Offsets<T> {
    /// A matrix of `rows` x `cols` elements with leading dimension `ld` from each of the `offsets` (in elements) on.
    /// The memory needs `ld * (cols - 1) + rows` elements from the greatest of them on; the call checks that.
    #[must_use]
    pub fn new(offsets: impl Into<Vec<usize>>, rows: usize, cols: usize, ld: usize) -> Self {
        Self {
            offsets: offsets.into(),
            rows,
            cols,
            ld,
            array: None,
        }
    }

    /// The matrices at these offsets of `memory`.
    pub fn of<M>(&mut self, memory: M) -> Pointers<'_, T, M> {
        Pointers { offsets: self, memory }
    }

    /// Number of matrices.
    #[must_use]
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    /// The array for this memory.
    fn array(&mut self, slice: &DeviceSlice<'_, T>) -> rocblas::Result<&PointerArray<T>> {
        let kept = self.array.take().filter(|array| array.is_of(slice));
        let array = match kept {
            Some(array) => array,
            None => {
                let _scope = Scope::enter(Category::Control);
                PointerArray::at_offsets(*slice, &self.offsets, self.rows, self.cols, self.ld)?
            }
        };
        Ok(self.array.insert(array))
    }

    /// From the first element to the last.
    fn extent(&self, name: Name, begin: *const T) -> Extent {
        let first = self.offsets.iter().copied().min().unwrap_or(0);
        let last = self.offsets.iter().copied().max().unwrap_or(0);
        let count = self.offsets.len();
        let len = span(self.rows, self.cols, self.ld, last - first, count.min(2));
        Extent::new(name.argument, begin.wrapping_add(first), len)
    }
}

impl<'o, T, M: Memory<Element = T>> Pointers<'o, T, M> {
    pub(crate) fn take<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, PointerBatch<'s, T>)>
    where
        M: 's,
        'o: 's,
        T: 's,
    {
        let Self { offsets, memory } = self;
        let slice = memory.take(stream)?;
        let extent = offsets.extent(name, slice.as_ptr());
        let array = name.of(offsets.array(&slice))?;
        Ok((extent, name.of(PointerBatch::from_array(array, slice))?))
    }
}

impl<'o, T, M: MemoryMut<Element = T>> Pointers<'o, T, M> {
    pub(crate) fn take_mut<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, PointerBatchMut<'s, T>)>
    where
        M: 's,
        'o: 's,
        T: 's,
    {
        let Self { offsets, memory } = self;
        let slice = memory.take_mut(stream)?;
        let extent = offsets.extent(name, slice.as_slice().as_ptr());
        let array = name.of(offsets.array(&slice.as_slice()))?;
        Ok((extent, name.of(PointerBatchMut::from_array(array, slice))?))
    }
}

impl<T> fmt::Debug for Offsets<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offsets")
            .field("count", &self.count())
            .field("rows", &self.rows)
            .field("cols", &self.cols)
            .field("ld", &self.ld)
            .finish_non_exhaustive()
    }
}
