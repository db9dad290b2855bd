use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use hip::{DeviceBuffer, DeviceSlice, Stream};

use crate::size::{Layout, size};
use crate::{Error, Result};

/// Addresses of equal column-major matrices in one stretch of device memory, kept in device memory from one call to the
/// next.
///
/// A [`PointerBatch`](crate::PointerBatch) borrows its matrices for as long as it lives, so it can't live on while
/// other code, such as OpenCL, has the memory. This array borrows nothing:
/// [`PointerBatch::from_array`](crate::PointerBatch::from_array) and
/// [`PointerBatchMut::from_array`](crate::PointerBatchMut::from_array) combine it with the memory for a call, without a
/// copy.
#[doc(alias = "batched")]
pub struct PointerArray<T> {
    addresses: Arc<DeviceBuffer<usize>>,
    layout: Layout,
    /// Where the memory begins that the addresses lie in, and the elements that they were checked against.
    base: usize,
    len: usize,
    /// Two matrices that share an element, with their offsets.
    meeting: Option<((usize, usize), (usize, usize))>,
    element: PhantomData<fn() -> T>,
}

impl<T> PointerArray<T> {
    /// A matrix of `rows` x `cols` with leading dimension `ld` at each of the `offsets` (in elements) of `data`. Copies
    /// the addresses to the device and waits for that.
    ///
    /// # Errors
    ///
    /// `ld` is less than `rows` or 1, the slice is too short, or HIP has no memory for the array.
    pub fn at_offsets(
        data: DeviceSlice<'_, T>,
        offsets: &[usize],
        rows: usize,
        cols: usize,
        ld: usize,
    ) -> Result<Self> {
        let layout = Layout::new(rows, cols, ld)?;
        within(offsets, layout, data.len())?;
        let at = |&offset| data.as_ptr().wrapping_add(offset).addr();
        let addresses: Vec<usize> = offsets.iter().map(at).collect();
        let meeting = layout
            .pair_that_meets(offsets)
            .map(|(first, second)| ((first, second), (offsets[first], offsets[second])));
        Ok(Self {
            addresses: Arc::new(upload(data.stream(), &addresses)?),
            layout,
            base: data.as_ptr().addr(),
            len: data.len(),
            meeting,
            element: PhantomData,
        })
    }

    /// Number of matrices.
    #[must_use]
    #[doc(alias = "batch_count")]
    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// Whether the addresses are those of this memory, so that they can be reused.
    #[must_use]
    pub fn is_of(&self, data: &DeviceSlice<'_, T>) -> bool {
        data.as_ptr().addr() == self.base
            && data.len() >= self.len
            && data.stream().device().ordinal() == self.addresses.device().ordinal()
    }

    pub(crate) fn addresses(&self) -> &Arc<DeviceBuffer<usize>> {
        &self.addresses
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn check(&self, data: &DeviceSlice<'_, T>) -> Result<()> {
        if self.is_of(data) {
            return Ok(());
        }
        Err(Error::OtherMemory {
            len: self.len,
            base: self.base,
            found_len: data.len(),
            found: data.as_ptr().addr(),
        })
    }

    pub(crate) fn check_apart(&self) -> Result<()> {
        let Some(((first, second), offsets)) = self.meeting else {
            return Ok(());
        };
        let Layout { rows, cols, ld } = self.layout;
        Err(Error::OverlapAt {
            first,
            second,
            offsets,
            rows,
            cols,
            ld,
        })
    }
}

impl<T> fmt::Debug for PointerArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointerArray")
            .field("count", &self.count())
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

/// Copies addresses to the device, and waits for that.
pub(crate) fn upload(stream: &Stream, addresses: &[usize]) -> Result<DeviceBuffer<usize>> {
    size("batch count", addresses.len())?;
    Ok(stream.device().alloc_from(stream, addresses)?)
}

/// Refuses offsets behind which there is no room for a matrix.
pub(crate) fn within(offsets: &[usize], layout: Layout, len: usize) -> Result<()> {
    for (index, &offset) in offsets.iter().enumerate() {
        long_enough(index, layout, len.saturating_sub(offset))?;
    }
    Ok(())
}

/// Refuses memory that is too short for matrix `index`.
pub(crate) fn long_enough(index: usize, layout: Layout, len: usize) -> Result<()> {
    let needed = layout.span();
    if needed <= len {
        return Ok(());
    }
    let Layout { rows, cols, ld } = layout;
    Err(Error::TooShort {
        what: format!("matrix {index} of the batch, {rows} x {cols} with leading dimension {ld},"),
        needed,
        len,
    })
}
