//! Access to a [`Shared`](crate::Shared) buffer for as long as a borrow lasts.
//!
//! Work may be enqueued while the guard lives; it need not have run when the guard is dropped. Leaking a guard is
//! harmless: the buffer recorded the access when it granted it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;

use super::allocation::SharedAllocation;
use super::range::check_range;
use super::{MemoryFacts, Shared};
use crate::Result;
use crate::access::Hold;
use crate::backing::{Backing, ClPart, SubBuffer};

/// What both kinds of access by OpenCL know.
struct Cl<'a> {
    allocation: &'a SharedAllocation,
    /// In elements of the whole buffer.
    range: Range<usize>,
    element: usize,
    part: ClPart,
    _hold: Hold,
}

impl<'a> Cl<'a> {
    fn new<T: Pod>(allocation: &'a SharedAllocation, range: Range<usize>, part: ClPart, hold: Hold) -> Self {
        Self {
            allocation,
            range,
            element: size_of::<T>(),
            part,
            _hold: hold,
        }
    }

    /// A range of this access in bytes of the whole buffer.
    fn bytes(&self, range: &Range<usize>) -> Result<Range<usize>> {
        check_range(range, self.range.len())?;
        let place = |index: usize| (self.range.start + index) * self.element;
        Ok(place(range.start)..place(range.end))
    }

    fn range(&self, range: &Range<usize>) -> Result<ClRange<'_>> {
        let backing = self.allocation.backing();
        let part = ClPart::of(&self.allocation.core, backing, self.bytes(range)?)?;
        Ok(ClRange { backing, part })
    }

    fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.allocation.backing().mem_arg()
    }

    fn mem_range(&self, range: &Range<usize>) -> Result<ClRange<'_>> {
        let backing = self.allocation.backing();
        let object: SubBuffer = ClPart::object(&self.allocation.core, backing, self.bytes(range)?)?;
        Ok(ClRange {
            backing,
            part: ClPart::Object(object),
        })
    }
}

/// Some elements of a guard as a kernel's argument: a pointer into shared virtual memory, or a part
/// of a buffer object.
#[must_use = "the argument is valid for as long as this lives"]
pub struct ClRange<'g> {
    backing: &'g dyn Backing,
    part: ClPart,
}

impl fmt::Debug for ClRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClRange")
            .field("route", &self.backing.route())
            .finish_non_exhaustive()
    }
}

impl ClRange<'_> {
    /// The kernel argument; the kernel's index 0 is the first element of the range.
    #[must_use]
    pub fn arg(&self) -> clmgr::Arg<'_> {
        self.part.arg(self.backing)
    }
}

/// The methods of both guards for OpenCL.
macro_rules! cl_guard {
    ($guard:ident, $rule:literal) => {
        impl<'a, T: Pod> $guard<'a, T> {
            pub(crate) fn new(allocation: &'a SharedAllocation, range: Range<usize>, part: ClPart, hold: Hold) -> Self {
                Self {
                    cl: Cl::new::<T>(allocation, range, part, hold),
                    buffer: PhantomData,
                }
            }

            /// The kernel argument.
            #[doc = $rule]
            #[must_use]
            pub fn arg(&self) -> clmgr::Arg<'_> {
                self.cl.part.arg(self.cl.allocation.backing())
            }

            /// The elements of `range`, counted from the guard's first, as a separate argument.
            ///
            /// Where OpenCL has a pointer, this is the pointer to the first of them. Where it has a
            /// buffer object, this is a part of it, which must begin at a multiple of
            /// `CL_DEVICE_MEM_BASE_ADDR_ALIGN` (128 bytes on most devices).
            #[doc = $rule]
            ///
            /// # Errors
            /// [`Error::OutOfRange`](crate::Error::OutOfRange),
            /// [`Error::Empty`](crate::Error::Empty) for no elements,
            /// [`Error::SubBufferStart`](crate::Error::SubBufferStart), or on a route whose memory OpenCL acquires as a
            /// whole.
            #[doc(alias = "clCreateSubBuffer")]
            pub fn range(&self, range: Range<usize>) -> Result<ClRange<'_>> {
                self.cl.range(&range)
            }

            /// As [`range`](Self::range), as a buffer object on every route that has one.
            ///
            /// # Errors
            /// As [`range`](Self::range) and [`mem_arg`](Self::mem_arg).
            #[doc(alias = "clCreateSubBuffer")]
            pub fn mem_range(&self, range: Range<usize>) -> Result<ClRange<'_>> {
                self.cl.mem_range(&range)
            }
        }

        impl<T: Pod> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($guard)).field(&self.arg()).finish()
            }
        }
    };
}

/// Read access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
pub struct ClGuard<'a, T: Pod> {
    cl: Cl<'a>,
    buffer: PhantomData<&'a Shared<T>>,
}
cl_guard!(ClGuard, "The kernel must not write through it.");

impl<T: Pod> ClGuard<'_, T> {
    /// The memory as a buffer object, for code that takes nothing else: the buffer itself, or a view
    /// of shared virtual memory. It must only be read. For a part, this is the whole buffer; see
    /// [`mem_range`](Self::mem_range).
    ///
    /// # Errors
    /// On a route where OpenCL has a bare pointer, or if the driver refuses the view.
    pub fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.cl.mem_arg()
    }
}

/// Read and write access for OpenCL kernels on one queue.
#[must_use = "access ends with the guard"]
pub struct ClGuardMut<'a, T: Pod> {
    cl: Cl<'a>,
    buffer: PhantomData<&'a mut Shared<T>>,
}
cl_guard!(ClGuardMut, "The kernel may read and write it.");

impl<T: Pod> ClGuardMut<'_, T> {
    /// What is known about the whole buffer's memory, which stays the same while the guard lives.
    #[must_use]
    pub fn facts(&self) -> MemoryFacts {
        MemoryFacts::of(self.cl.allocation)
    }

    /// The memory as a buffer object, for code that takes nothing else: the buffer itself, or a view
    /// of shared virtual memory. For a part, this is the whole buffer, of which only the part may be
    /// touched; see [`mem_range`](Self::mem_range).
    ///
    /// # Errors
    /// On a route where OpenCL has a bare pointer, or if the driver refuses the view.
    pub fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.cl.mem_arg()
    }
}

/// Read access for HIP work on one stream.
#[must_use = "access ends with the guard"]
#[derive(Debug)]
pub struct HipGuard<'a, T: Pod> {
    slice: hip::DeviceSlice<'a, T>,
    buffer: PhantomData<&'a Shared<T>>,
}

impl<'a, T: Pod> HipGuard<'a, T> {
    pub(crate) fn new(slice: hip::DeviceSlice<'a, T>) -> Self {
        Self {
            slice,
            buffer: PhantomData,
        }
    }

    /// The elements, to be read on the guard's stream.
    #[must_use]
    pub fn slice(&self) -> hip::DeviceSlice<'_, T> {
        self.slice
    }

    /// The elements of `range`, counted from the guard's first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), or [`Error::Empty`](crate::Error::Empty) for
    /// no elements.
    pub fn range(&self, range: Range<usize>) -> Result<hip::DeviceSlice<'_, T>> {
        check_range(&range, self.slice.len())?;
        Ok(self.slice.slice(range)?)
    }

    /// The elements, for as long as the buffer is borrowed.
    pub(crate) fn into_slice(self) -> hip::DeviceSlice<'a, T> {
        self.slice
    }
}

/// Read and write access for HIP work on one stream.
#[must_use = "access ends with the guard"]
pub struct HipGuardMut<'a, T: Pod> {
    allocation: &'a SharedAllocation,
    slice: hip::DeviceSliceMut<'a, T>,
    buffer: PhantomData<&'a mut Shared<T>>,
}

impl<'a, T: Pod> HipGuardMut<'a, T> {
    pub(crate) fn new(allocation: &'a SharedAllocation, slice: hip::DeviceSliceMut<'a, T>) -> Self {
        Self {
            allocation,
            slice,
            buffer: PhantomData,
        }
    }

    /// What is known about the whole buffer's memory, which stays the same while the guard lives.
    #[must_use]
    pub fn facts(&self) -> MemoryFacts {
        MemoryFacts::of(self.allocation)
    }

    /// The elements, to be read and written on the guard's stream.
    #[must_use]
    pub fn slice_mut(&mut self) -> hip::DeviceSliceMut<'_, T> {
        self.slice.reborrow()
    }

    /// The elements of `range`, counted from the guard's first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), or [`Error::Empty`](crate::Error::Empty) for
    /// no elements.
    pub fn range_mut(&mut self, range: Range<usize>) -> Result<hip::DeviceSliceMut<'_, T>> {
        check_range(&range, self.slice.len())?;
        Ok(self.slice.slice_mut(range)?)
    }

    /// The elements, for as long as the buffer is borrowed.
    pub(crate) fn into_slice(self) -> hip::DeviceSliceMut<'a, T> {
        self.slice
    }
}

impl<T: Pod> fmt::Debug for HipGuardMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HipGuardMut").field(&self.slice).finish()
    }
}
