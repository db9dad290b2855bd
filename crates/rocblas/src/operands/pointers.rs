use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};
use parking_lot::Mutex;

use super::addresses::Addresses;
use super::call::{Call, Place};
use crate::size::Layout;
use crate::{Error, Handle, Result};

/// Where equal column-major matrices begin in some memory, in any order: the batches of pointers of rocBLAS and
/// rocSOLVER.
///
/// The libraries want an array of addresses in device memory. The first call that uses this one makes it (a copy of 8
/// bytes for each matrix, which waits for the stream), and later calls reuse it for as long as the memory stays in place:
/// make one of these for each buffer and keep it. For matrices at equal distances a [`Batch`](crate::Batch) does the
/// same without an array.
#[doc(alias = "batched")]
pub struct PointerArray<T> {
    layout: Layout,
    offsets: Vec<usize>,
    /// The greatest offset, with its index.
    last: Option<(usize, usize)>,
    kept: Mutex<Option<Arc<Addresses>>>,
    element: PhantomData<fn() -> T>,
}

/// Matrices of a [`PointerArray`] in some memory. Those of an input may overlap; of an output no two share an element.
///
/// `S` is the list of memories, one for [`PointerArray::of`].
///
/// ```compile_fail,E0499
/// # use rocblas::{Handle, PointerArray, Result, solver};
/// fn twice(blas: &Handle, buffer: &mut hip::DeviceBuffer<f32>) -> Result<()> {
///     let array = PointerArray::new(2, 2, 2);
///     let memories = [&mut *buffer, &mut *buffer];
///     solver::getrf(blas, array.of_each(memories))?.check()
/// }
/// ```
///
/// ```compile_fail,E0505
/// # use rocblas::{Handle, PointerArray, Result, solver};
/// fn early(blas: &Handle, mut buffer: hip::DeviceBuffer<f32>) -> Result<()> {
///     let array = PointerArray::new(2, 2, 2);
///     let lu = solver::getrf(blas, array.of(&mut buffer))?;
///     drop(buffer);
///     lu.check()
/// }
/// ```
#[derive(Debug)]
#[doc(alias = "batch_count")]
pub struct Pointers<'p, T, S> {
    array: &'p PointerArray<T>,
    memories: S,
}

/// Matrices whose memory a call took, by an array of their addresses.
#[derive(Debug)]
pub(crate) struct TakenPointers<'h, T> {
    addresses: Arc<Addresses>,
    stream: &'h Stream,
    matrices: PhantomData<&'h mut [T]>,
}

impl<T> PointerArray<T> {
    /// A matrix of `rows` x `cols` elements with leading dimension `ld` at the beginning of each memory.
    #[must_use]
    pub fn new(rows: usize, cols: usize, ld: usize) -> Self {
        Self::at_offsets([0], rows, cols, ld)
    }

    /// A matrix of `rows` x `cols` elements with leading dimension `ld` from each of the `offsets` (in elements) on. The
    /// memory needs `ld * (cols - 1) + rows` elements from the greatest of them on.
    #[must_use]
    pub fn at_offsets(offsets: impl Into<Vec<usize>>, rows: usize, cols: usize, ld: usize) -> Self {
        let offsets = offsets.into();
        Self {
            layout: Layout { rows, cols, ld },
            last: offsets.iter().copied().enumerate().max_by_key(|&(_, offset)| offset),
            offsets,
            kept: Mutex::default(),
            element: PhantomData,
        }
    }

    /// The matrices in `memory`.
    pub fn of<M>(&self, memory: M) -> Pointers<'_, T, [M; 1]> {
        self.of_each([memory])
    }

    /// The matrices in each of the memories, one memory after the other.
    pub fn of_each<S: IntoIterator>(&self, memories: S) -> Pointers<'_, T, S> {
        Pointers { array: self, memories }
    }

    /// Refuses memory that is too short for a matrix of it.
    fn check_len(&self, memory: usize, len: usize) -> Result<()> {
        let Some((index, offset)) = self.last else {
            return Ok(());
        };
        let needed = offset.saturating_add(self.layout.span());
        if needed <= len {
            return Ok(());
        }
        let (matrix, Layout { rows, cols, ld }) = (memory * self.offsets.len() + index, self.layout);
        Err(Error::TooShort {
            what: format!(
                "matrix {matrix} of the batch, {rows} x {cols} with leading dimension {ld} from element {offset} on,"
            ),
            needed,
            len,
        })
    }
}

impl<T, S> Pointers<'_, T, S> {
    pub(crate) fn layout(&self) -> Layout {
        self.array.layout
    }
}

impl<T, S: IntoIterator> Pointers<'_, T, S> {
    /// Makes the array now, for calls that will use the same memory: [`Handle::capture`] does not take the copy that the
    /// first call makes.
    ///
    /// # Errors
    ///
    /// A matrix does not fit its memory, the memory can't be read on the handle's stream, or HIP has none for the array.
    pub fn send(self, handle: &Handle) -> Result<()>
    where
        S::Item: DeviceMemory<Element = T>,
    {
        self.read(&mut Call::new(handle.stream(), "send"), "the matrices")
            .map(drop)
    }

    /// Takes the memory to be read.
    pub(crate) fn read<'h, 's>(self, call: &mut Call<'h>, argument: &'static str) -> Result<TakenPointers<'s, T>>
    where
        'h: 's,
        S::Item: DeviceMemory<Element = T> + 's,
        T: 's,
    {
        let addresses = self.take(call, argument, |call, memory| {
            let slice: DeviceSlice<'s, T> = call.read_all(argument, memory)?;
            Ok((slice.as_ptr().addr(), slice.len()))
        })?;
        call.note(argument, false, Place::Matrices(addresses.clone()))?;
        Ok(TakenPointers::new(addresses, call.stream()))
    }

    /// Takes the memory to be read and written.
    pub(crate) fn write<'h, 's>(self, call: &mut Call<'h>, argument: &'static str) -> Result<TakenPointers<'s, T>>
    where
        'h: 's,
        S::Item: DeviceMemoryMut<Element = T> + 's,
        T: 's,
    {
        let addresses = self.take(call, argument, |call, memory| {
            let mut slice: DeviceSliceMut<'s, T> = call.write_all(argument, memory)?;
            Ok((slice.as_mut_ptr().addr(), slice.len()))
        })?;
        addresses
            .check_distinct()
            .map_err(|cause| call.misfit(argument, cause))?;
        call.note(argument, true, Place::Matrices(addresses.clone()))?;
        Ok(TakenPointers::new(addresses, call.stream()))
    }

    /// The addresses of the matrices in memories that `access` takes: those of the last call, if nothing has moved.
    fn take<'h>(
        self,
        call: &Call<'h>,
        argument: &'static str,
        access: impl Fn(&Call<'h>, S::Item) -> Result<(usize, usize)>,
    ) -> Result<Arc<Addresses>> {
        let Self { array, memories } = self;
        let PointerArray { layout, offsets, .. } = array;
        let misfit = |cause| call.misfit(argument, cause);
        layout.check().map_err(misfit)?;
        let kept = array.kept.lock().clone().filter(|kept| kept.is_for(call.stream()));
        let known = kept.as_ref().map_or(&[][..], |kept| kept.begins());
        let mut count = 0;
        let mut fresh: Option<Vec<usize>> = None;
        for memory in memories {
            let (begin, len) = access(call, memory)?;
            array.check_len(count, len).map_err(misfit)?;
            match &mut fresh {
                Some(begins) => begins.push(begin),
                None if known.get(count) == Some(&begin) => {}
                None => fresh = Some(known[..count].iter().copied().chain([begin]).collect()),
            }
            count += 1;
        }
        let begins = match (fresh, &kept) {
            (Some(begins), _) => begins,
            (None, Some(kept)) if known.len() == count => return Ok(kept.clone()),
            (None, _) => known[..count].to_vec(),
        };
        let addresses = Arc::new(Addresses::send::<T>(call.stream(), begins, offsets, *layout)?);
        *array.kept.lock() = Some(addresses.clone());
        Ok(addresses)
    }
}

impl<'h, T> TakenPointers<'h, T> {
    fn new(addresses: Arc<Addresses>, stream: &'h Stream) -> Self {
        Self {
            addresses,
            stream,
            matrices: PhantomData,
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.addresses.layout()
    }

    pub(crate) fn count(&self) -> usize {
        self.addresses.count()
    }

    pub(crate) fn stream(&self) -> &'h Stream {
        self.stream
    }

    pub(crate) fn place(&self) -> Place {
        Place::Matrices(self.addresses.clone())
    }

    /// The array of addresses, for a call on the stream. A graph that records the call keeps the array, which the
    /// arguments of its launch do not.
    pub(crate) fn array(&self) -> Result<*const *mut T> {
        let array = self.addresses.on(self.stream)?;
        self.stream.keep_if_recording(&self.addresses);
        Ok(array.cast())
    }
}

impl<T, S: Clone> Clone for Pointers<'_, T, S> {
    fn clone(&self) -> Self {
        Self {
            array: self.array,
            memories: self.memories.clone(),
        }
    }
}

impl<T, S: Copy> Copy for Pointers<'_, T, S> {}

impl<T> fmt::Debug for PointerArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointerArray")
            .field("layout", &self.layout)
            .field("offsets", &self.offsets.len())
            .finish_non_exhaustive()
    }
}
