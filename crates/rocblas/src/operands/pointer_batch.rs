use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use hip::{DeviceBuffer, DeviceSlice, DeviceSliceMut, Stream};

use super::pointer_array::{PointerArray, long_enough, upload, within};
use crate::size::Layout;
use crate::{Error, Result};

/// Equal column-major matrices that lie anywhere in device memory, to be read: an array of their addresses, itself in
/// device memory.
///
/// It owns the array and borrows the matrices. Making one copies the addresses to the device and waits for that, so
/// make it once and use it often; a [`PointerArray`] keeps the addresses while the matrices are not borrowed. For
/// matrices at equal distances a [`Batch`](crate::Batch) does the same without an array.
#[doc(alias = "batched")]
pub struct PointerBatch<'a, T> {
    array: Array,
    matrices: PhantomData<&'a [T]>,
}

/// Equal column-major matrices that lie anywhere in device memory, to be read and written: an array of their addresses.
///
/// As [`PointerBatch`]; no two of the matrices share an element.
///
/// ```compile_fail,E0499
/// # use rocblas::{PointerBatchMut, Result};
/// fn twice(buffer: &mut hip::DeviceBuffer<f32>, stream: &hip::Stream) -> Result<()> {
///     let slices = [buffer.on_mut(stream)?, buffer.on_mut(stream)?];
///     PointerBatchMut::new(stream, slices, 2, 2, 2).map(drop)
/// }
/// ```
///
/// ```compile_fail,E0505
/// # use rocblas::{PointerBatchMut, Result};
/// fn early(mut buffer: hip::DeviceBuffer<f32>, stream: &hip::Stream) -> Result<()> {
///     let batch = PointerBatchMut::new(stream, [buffer.on_mut(stream)?], 2, 2, 2)?;
///     drop(buffer);
///     drop(batch);
///     Ok(())
/// }
/// ```
pub struct PointerBatchMut<'a, T> {
    array: Array,
    matrices: PhantomData<&'a mut [T]>,
}

/// Addresses of matrices, with their common layout.
struct Array {
    /// Shared with a [`PointerArray`], and with graphs of captured calls.
    addresses: Arc<DeviceBuffer<usize>>,
    layout: Layout,
    stream: Stream,
}

impl<'a, T> PointerBatch<'a, T> {
    /// A matrix of `rows` x `cols` with leading dimension `ld` at the start of each slice. They may overlap, or be the
    /// same.
    ///
    /// A slice needs `ld * (cols - 1) + rows` elements, or none if a size is 0; it may have more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, a slice is too short or was taken for another stream, or HIP has no memory for
    /// the array.
    pub fn new(
        stream: &Stream,
        slices: impl IntoIterator<Item = DeviceSlice<'a, T>>,
        rows: usize,
        cols: usize,
        ld: usize,
    ) -> Result<Self> {
        let slices = slices.into_iter();
        let found = slices.map(|slice| Found {
            address: slice.as_ptr().addr(),
            len: slice.len(),
            stream: slice.stream(),
        });
        let layout = Layout::new(rows, cols, ld)?;
        Ok(Self {
            array: Array::new(stream, collect(stream, found, layout)?, layout)?,
            matrices: PhantomData,
        })
    }

    /// A matrix of `rows` x `cols` with leading dimension `ld` at each of the `offsets` (in elements) of one slice.
    ///
    /// # Errors
    ///
    /// As [`PointerBatch::new`].
    pub fn at_offsets(
        data: DeviceSlice<'a, T>,
        offsets: &[usize],
        rows: usize,
        cols: usize,
        ld: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        within(offsets, layout, data.len())?;
        let at = |&offset| data.as_ptr().wrapping_add(offset).addr();
        let addresses = offsets.iter().map(at).collect();
        Ok(Self {
            array: Array::new(data.stream(), addresses, layout)?,
            matrices: PhantomData,
        })
    }

    /// The matrices that a kept array names, in the memory that it was made for: nothing is copied or allocated.
    ///
    /// # Errors
    ///
    /// [`Error::OtherMemory`] if the slice begins elsewhere, is shorter or of another device.
    pub fn from_array(array: &'a PointerArray<T>, data: DeviceSlice<'a, T>) -> Result<Self> {
        array.check(&data)?;
        Ok(Self {
            array: Array {
                addresses: Arc::clone(array.addresses()),
                layout: array.layout(),
                stream: data.stream().clone(),
            },
            matrices: PhantomData,
        })
    }
}

impl<'a, T> PointerBatchMut<'a, T> {
    /// A matrix of `rows` x `cols` with leading dimension `ld` at the start of each slice.
    ///
    /// A slice needs `ld * (cols - 1) + rows` elements, or none if a size is 0; it may have more.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, a slice is too short or was taken for another stream, or HIP has no memory for
    /// the array.
    pub fn new(
        stream: &Stream,
        slices: impl IntoIterator<Item = DeviceSliceMut<'a, T>>,
        rows: usize,
        cols: usize,
        ld: usize,
    ) -> Result<Self> {
        let slices = slices.into_iter();
        let found = slices.map(|mut slice| Found {
            address: slice.as_mut_ptr().addr(),
            len: slice.len(),
            stream: slice.stream(),
        });
        let layout = Layout::new(rows, cols, ld)?;
        Ok(Self {
            array: Array::new(stream, collect(stream, found, layout)?, layout)?,
            matrices: PhantomData,
        })
    }

    /// A matrix of `rows` x `cols` with leading dimension `ld` at each of the `offsets` (in elements) of one slice.
    ///
    /// # Errors
    ///
    /// As [`PointerBatchMut::new`], or two of the matrices share an element.
    pub fn at_offsets(
        mut data: DeviceSliceMut<'a, T>,
        offsets: &[usize],
        rows: usize,
        cols: usize,
        ld: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        within(offsets, layout, data.len())?;
        if let Some((first, second)) = layout.pair_that_meets(offsets) {
            return Err(Error::OverlapAt {
                first,
                second,
                offsets: (offsets[first], offsets[second]),
                rows,
                cols,
                ld,
            });
        }
        let begin = data.as_mut_ptr();
        let at = |&offset| begin.wrapping_add(offset).addr();
        let addresses = offsets.iter().map(at).collect();
        Ok(Self {
            array: Array::new(data.stream(), addresses, layout)?,
            matrices: PhantomData,
        })
    }

    /// The matrices that a kept array names, in the memory that it was made for: nothing is copied or allocated.
    ///
    /// # Errors
    ///
    /// [`Error::OtherMemory`] if the slice begins elsewhere, is shorter or of another device, or two of the matrices
    /// share an element.
    pub fn from_array(array: &'a PointerArray<T>, data: DeviceSliceMut<'a, T>) -> Result<Self> {
        array.check(&data.as_slice())?;
        array.check_apart()?;
        Ok(Self {
            array: Array {
                addresses: Arc::clone(array.addresses()),
                layout: array.layout(),
                stream: data.stream().clone(),
            },
            matrices: PhantomData,
        })
    }
}

/// The getters of both kinds of batch.
macro_rules! describe {
    ($batch:ident) => {
        impl<T> $batch<'_, T> {
            /// Rows of each matrix.
            #[must_use]
            pub fn rows(&self) -> usize {
                self.array.layout.rows
            }

            /// Columns of each matrix.
            #[must_use]
            pub fn cols(&self) -> usize {
                self.array.layout.cols
            }

            /// Elements from one column to the next.
            #[must_use]
            pub fn ld(&self) -> usize {
                self.array.layout.ld
            }

            /// Number of matrices.
            #[must_use]
            #[doc(alias = "batch_count")]
            pub fn count(&self) -> usize {
                self.array.addresses.len()
            }

            /// The stream it may be used on.
            #[must_use]
            pub fn stream(&self) -> &Stream {
                &self.array.stream
            }

            pub(crate) fn layout(&self) -> Layout {
                self.array.layout
            }
        }

        impl<T> fmt::Debug for $batch<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($batch))
                    .field("count", &self.count())
                    .field("layout", &self.array.layout)
                    .finish_non_exhaustive()
            }
        }
    };
}
describe!(PointerBatch);
describe!(PointerBatchMut);

impl<T> PointerBatch<'_, T> {
    /// The array's address, for a call on the stream.
    pub(crate) fn addresses(&self) -> Result<*const *const T> {
        self.array.address()
    }
}

impl<T> PointerBatchMut<'_, T> {
    /// The array's address, for a call on the stream that writes the matrices.
    pub(crate) fn addresses(&mut self) -> Result<*const *mut T> {
        self.array_address()
    }

    /// The same for calls that only read the matrices, although they take addresses to write at.
    pub(crate) fn array_address(&self) -> Result<*const *mut T> {
        self.array.address()
    }
}

impl Array {
    fn new(stream: &Stream, addresses: Vec<usize>, layout: Layout) -> Result<Self> {
        Ok(Self {
            addresses: Arc::new(upload(stream, &addresses)?),
            layout,
            stream: stream.clone(),
        })
    }

    /// For a call on the stream. A graph that records the call keeps the array, which the arguments of its launch do
    /// not.
    fn address<P>(&self) -> Result<*const P> {
        let address = self.addresses.on(&self.stream)?.as_ptr().cast();
        self.stream.keep_if_recording(&self.addresses);
        Ok(address)
    }
}

/// A slice without its kind.
struct Found<'a> {
    address: usize,
    len: usize,
    stream: &'a Stream,
}

/// The addresses of slices that are of this stream and long enough.
fn collect<'a>(stream: &Stream, slices: impl Iterator<Item = Found<'a>>, layout: Layout) -> Result<Vec<usize>> {
    slices
        .enumerate()
        .map(|(index, slice)| {
            if slice.stream != stream {
                return Err(Error::WrongStream {
                    call: "pointer batch",
                    argument: "one of the slices",
                });
            }
            long_enough(index, layout, slice.len)?;
            Ok(slice.address)
        })
        .collect()
}
