//! Parts of a shared buffer, each ordered separately.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;

use super::allocation::SharedAllocation;
use super::range::{bytes, check_range};
use super::{ClGuard, ClGuardMut, HipGuard, HipGuardMut, Shared};
use crate::access::Hold;
use crate::backing::ClPart;
use crate::values::{Access, Side};
use crate::{Error, Result};

/// Some elements of a [`Shared`] buffer, to be read. Made by [`Shared::part`].
pub struct Part<'a, T: Pod> {
    whole: &'a Shared<T>,
    range: Range<usize>,
}

/// Some elements of a [`Shared`] buffer, held exclusively. Made by [`Shared::part_mut`], [`Shared::split_at_mut`] and
/// [`Shared::parts_mut`].
///
/// OpenCL may work on one part while HIP works on another: only work on the same bytes is ordered. A part whose route
/// fails returns [`Error::UnderReader`]: the other parts may be written, and only the whole can
/// [move](Shared::move_to).
///
/// A thread that waits on the host for one part, as with [`Grade::Host`](crate::Grade::Host), holds the buffer's lock
/// meanwhile: a thread that asks for another part waits with it.
///
/// On [`Route::ExternalFd`](crate::Route::ExternalFd) the memory is OpenCL's or HIP's as a whole. There
/// all parts that live together go to the side that takes one first, unless both sides only read; the other side gets
/// [`Error::PartOnOtherSide`] until the whole buffer is divided anew. On [`Route::Staging`](crate::Route::Staging) a
/// change of side copies the bytes of the part alone, which begins and ends at multiples of
/// `CL_DEVICE_MEM_BASE_ADDR_ALIGN` or where the buffer does ([`Error::PartGrid`]).
///
/// ```compile_fail,E0499
/// # fn twice(data: &mut interop::Shared<f32>) -> interop::Result<()> {
/// let left = data.part_mut(0..4)?;
/// let right = data.part_mut(4..8)?;
/// drop((left, right));
/// # Ok(())
/// # }
/// ```
pub struct PartMut<'a, T: Pod> {
    whole: &'a Shared<T>,
    range: Range<usize>,
    exclusive: PhantomData<&'a mut Shared<T>>,
}

/// Parts of a buffer that are used independently of each other.
impl<T: Pod> Shared<T> {
    /// The elements of `range` to be read.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Empty`] for no elements, or [`Error::PartGrid`] on a route that
    /// copies parts (staging).
    pub fn part(&self, range: Range<usize>) -> Result<Part<'_, T>> {
        self.check_part(&range)?;
        Ok(Part { whole: self, range })
    }

    /// The elements of `range` to be read and written.
    ///
    /// # Errors
    /// As [`part`](Self::part).
    pub fn part_mut(&mut self, range: Range<usize>) -> Result<PartMut<'_, T>> {
        let [part] = self.parts_mut([range])?;
        Ok(part)
    }

    /// The elements before `middle`, and those from there on.
    ///
    /// # Errors
    /// As [`part`](Self::part); each side needs an element.
    pub fn split_at_mut(&mut self, middle: usize) -> Result<(PartMut<'_, T>, PartMut<'_, T>)> {
        let len = self.len();
        let [left, right] = self.parts_mut([0..middle, middle..len])?;
        Ok((left, right))
    }

    /// Several parts at once, which share no element.
    ///
    /// # Errors
    /// As [`part`](Self::part), or [`Error::PartsOverlap`].
    pub fn parts_mut<const N: usize>(&mut self, ranges: [Range<usize>; N]) -> Result<[PartMut<'_, T>; N]> {
        for (index, range) in ranges.iter().enumerate() {
            self.check_part(range)?;
            let mut earlier = ranges[..index].iter();
            if let Some(other) = earlier.find(|other| range.start < other.end && other.start < range.end) {
                return Err(Error::PartsOverlap {
                    first: other.clone(),
                    second: range.clone(),
                });
            }
        }
        self.begin_parts();
        let whole: &Self = self;
        Ok(ranges.map(|range| PartMut::new(whole, range)))
    }

    fn check_part(&self, range: &Range<usize>) -> Result<()> {
        check_range(range, self.len())?;
        self.backing().check_part(self.core(), &bytes::<T>(range))
    }
}

impl<'a, T: Pod> PartMut<'a, T> {
    /// The caller ensures that no two live ones share an element.
    fn new(whole: &'a Shared<T>, range: Range<usize>) -> Self {
        Self {
            whole,
            range,
            exclusive: PhantomData,
        }
    }

    /// Read and write access for kernels on `queue`, as [`Shared::cl_mut`].
    ///
    /// # Errors
    /// As [`cl`](Self::cl), or [`Error::ReadOnly`].
    pub fn cl_mut<'g>(&'g mut self, queue: &'g clmgr::Queue) -> Result<ClGuardMut<'g, T>> {
        self.whole.check_writable()?;
        let (allocation, part, hold) = self.take_cl(queue, Access::Write)?;
        Ok(ClGuardMut::new(allocation, self.range.clone(), part, hold))
    }

    /// Read and write access for HIP work on `stream`, as [`Shared::hip_mut`].
    ///
    /// # Errors
    /// As [`hip`](Self::hip), or [`Error::ReadOnly`].
    pub fn hip_mut<'g>(&'g mut self, stream: &'g hip::Stream) -> Result<HipGuardMut<'g, T>> {
        self.whole.check_writable()?;
        let allocation = self.take_hip(stream, Access::Write)?;
        Ok(HipGuardMut::new(
            allocation,
            allocation.slice_mut(stream, self.range.clone()),
        ))
    }

    /// The elements before `middle`, counted from the part's first, and those from there on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], or [`Error::Empty`]: each side needs an element.
    pub fn split_at_mut(self, middle: usize) -> Result<(Self, Self)> {
        let len = self.len();
        check_range(&(0..middle), len)?;
        check_range(&(middle..len), len)?;
        let Range { start, end } = self.range;
        let middle = start + middle;
        for side in [start..middle, middle..end] {
            self.whole.check_part(&side)?;
        }
        Ok((Self::new(self.whole, start..middle), Self::new(self.whole, middle..end)))
    }

    /// Others may write next to it, so the memory stays where it is.
    fn take_cl(&self, queue: &clmgr::Queue, access: Access) -> Result<(&SharedAllocation, ClPart, Hold)> {
        let bytes = bytes::<T>(&self.range);
        self.whole.check_side(Side::Cl, access, &self.range)?;
        let allocation = self.whole.allocation();
        // Before anything is made to wait for a user that never comes.
        let part = ClPart::of(&allocation.core, allocation.backing(), bytes.clone())?;
        let hold = allocation
            .grant_cl(queue, access, &bytes)?
            .map_err(|error| allocation.under_reader("hand-off of a part to OpenCL", error))?;
        Ok((allocation, part, hold))
    }

    fn take_hip(&self, stream: &hip::Stream, access: Access) -> Result<&SharedAllocation> {
        self.whole.check_side(Side::Hip, access, &self.range)?;
        let allocation = self.whole.allocation();
        allocation
            .grant_hip(stream, access, &bytes::<T>(&self.range))?
            .map_err(|error| allocation.under_reader("hand-off of a part to HIP", error))?;
        Ok(allocation)
    }
}

/// While one of these lives, others may only read, on either side.
impl<T: Pod> Part<'_, T> {
    fn take_cl(&self, queue: &clmgr::Queue, access: Access) -> Result<(&SharedAllocation, ClPart, Hold)> {
        let bytes = bytes::<T>(&self.range);
        let during = "hand-off of a part to OpenCL";
        let (allocation, (part, hold)) = self.whole.as_reader(during, |allocation| {
            allocation.backing().check_part(&allocation.core, &bytes)?;
            let part = ClPart::of(&allocation.core, allocation.backing(), bytes.clone())?;
            let granted = allocation.grant_cl(queue, access, &bytes)?;
            Ok(granted.map(|hold| (part, hold)))
        })?;
        Ok((allocation, part, hold))
    }

    fn take_hip(&self, stream: &hip::Stream, access: Access) -> Result<&SharedAllocation> {
        let bytes = bytes::<T>(&self.range);
        let during = "hand-off of a part to HIP";
        let (allocation, ()) = self.whole.as_reader(during, |allocation| {
            allocation.backing().check_part(&allocation.core, &bytes)?;
            allocation.grant_hip(stream, access, &bytes)
        })?;
        Ok(allocation)
    }
}

/// The methods of both kinds of part.
macro_rules! part {
    ($part:ident) => {
        impl<T: Pod> $part<'_, T> {
            /// Number of elements, at least one.
            #[must_use]
            #[allow(clippy::len_without_is_empty, reason = "a part is never empty")]
            pub fn len(&self) -> usize {
                self.range.len()
            }

            pub(crate) fn whole(&self) -> &Shared<T> {
                self.whole
            }

            /// The place in the whole buffer, in elements.
            #[must_use]
            pub fn range(&self) -> Range<usize> {
                self.range.clone()
            }

            /// Read access for kernels on `queue`, as [`Shared::cl`]. Index 0 of the argument is the
            /// part's first element.
            ///
            /// # Errors
            /// As [`Shared::cl`], or [`Error::SubBufferStart`] on a route where OpenCL has a buffer
            /// object.
            pub fn cl<'g>(&'g self, queue: &'g clmgr::Queue) -> Result<ClGuard<'g, T>> {
                let (allocation, part, hold) = self.take_cl(queue, Access::Read)?;
                Ok(ClGuard::new(allocation, self.range.clone(), part, hold))
            }

            /// Read access for HIP work on `stream`, as [`Shared::hip`].
            ///
            /// # Errors
            /// As [`Shared::hip`].
            pub fn hip<'g>(&'g self, stream: &'g hip::Stream) -> Result<HipGuard<'g, T>> {
                let allocation = self.take_hip(stream, Access::Read)?;
                Ok(HipGuard::new(allocation.slice(stream, self.range.clone())))
            }
        }

        impl<T: Pod> fmt::Debug for $part<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($part))
                    .field("range", &self.range)
                    .field("whole", self.whole)
                    .finish()
            }
        }
    };
}
part!(Part);
part!(PartMut);
