//! Parts of a buffer object that are buffer objects themselves.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

use bytemuck::Pod;
use opencl_sys::{cl_buffer_region, cl_mem};

use super::{ClMap, ClMapMut, MemRef, Object};
use crate::api::slot;
use crate::buffer::bounds::{byte_range, same_length};
use crate::buffer::pending::Pending;
use crate::context::Context;
use crate::error::{Error, Result, bytes_of, check};
use crate::event::Event;
use crate::kernel::Arg;
use crate::queue::Queue;

/// A part of a buffer, which it borrows. Its uses count as uses of the whole.
pub struct SubBuffer<'a, T> {
    object: Object<T>,
    start: usize,
    whole: PhantomData<&'a Object<T>>,
}

/// A part of a buffer that is borrowed exclusively.
///
/// It offers what [`SubBuffer`] offers, and may be written.
pub struct SubBufferMut<'a, T> {
    part: SubBuffer<'a, T>,
    whole: PhantomData<&'a mut Object<T>>,
}

impl<T: Pod> Object<T> {
    /// The part `range`; the caller's borrow of the whole must be `'a`.
    pub fn part<'a>(&self, range: Range<usize>) -> Result<SubBuffer<'a, T>> {
        let count = range.len();
        let bytes = byte_range::<T>(self.len(), range.start, count)?;
        bytes_of::<T>("the length of a sub-buffer", count)?;
        let device = self.context().device();
        let alignment = device.sub_buffer_alignment();
        if !bytes.start.is_multiple_of(alignment) {
            return Err(Error::Region {
                what: "a sub-buffer",
                reason: format!(
                    "it starts at byte {}; the start must be a multiple of {alignment} on `{}`",
                    bytes.start,
                    device.name()
                ),
            });
        }
        let create = slot!(self.context().api(), clCreateSubBuffer)?;
        let region = cl_buffer_region {
            origin: bytes.start,
            size: bytes.len(),
        };
        let mut code = 0;
        // SAFETY: the buffer is alive; flags of zero are those of the whole; the region lies in it
        // and is read before the call returns; `code` is a valid place.
        let raw = unsafe {
            create(
                self.raw(),
                0,
                opencl_sys::CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast(),
                &raw mut code,
            )
        };
        check(code, || {
            format!("clCreateSubBuffer({} bytes at {})", bytes.len(), bytes.start)
        })?;
        // SAFETY: the handle is the new object's one reference, and it has this size.
        let object = unsafe {
            Object::own(
                self.context(),
                raw,
                self.access(),
                count,
                self.usage().clone(),
                self.maps().clone(),
            )
        };
        Ok(SubBuffer {
            object,
            start: range.start,
            whole: PhantomData,
        })
    }

    /// As [`part`](Self::part), for an exclusive borrow.
    pub fn part_mut<'a>(&mut self, range: Range<usize>) -> Result<SubBufferMut<'a, T>> {
        Ok(SubBufferMut {
            part: self.part(range)?,
            whole: PhantomData,
        })
    }
}

impl<T: Pod> SubBuffer<'_, T> {
    /// Copies the whole part into `out`, which has its length, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read`](crate::RegularBuffer::read).
    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        self.object.read(queue, out)
    }

    /// Enqueues a copy of the part into `out`, which has its length.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read_async`](crate::RegularBuffer::read_async).
    pub fn read_async(&self, queue: &Queue, out: Vec<T>) -> Result<Pending<T>> {
        same_length("reading a sub-buffer", self.len(), out.len())?;
        self.object.read_async(queue, 0, out)
    }

    /// Maps the part for the host to read.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::map`](crate::RegularBuffer::map).
    pub fn map(&self, queue: &Queue) -> Result<ClMap<'_, T>> {
        self.object.map(queue)
    }
}

impl<T> SubBuffer<'_, T> {
    /// The first element of the whole that belongs to the part.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// The number of elements; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.object.len()
    }

    /// The part as a kernel's argument.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        Arg::Mem(self.raw())
    }

    /// The part's handle, valid for as long as the part lives.
    #[must_use]
    pub fn raw(&self) -> cl_mem {
        self.object.raw()
    }

    /// The part's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.object.context()
    }
}

impl<T: Pod> SubBufferMut<'_, T> {
    /// Copies `data`, which has the part's length, into the part, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write`](crate::RegularBuffer::write).
    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        self.part.object.write(queue, data)
    }

    /// Enqueues a write of `value` to every element of the part.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::fill`](crate::RegularBuffer::fill).
    pub fn fill(&mut self, queue: &Queue, value: T) -> Result<Event> {
        let len = self.len();
        self.part.object.fill(queue, 0, len, value)
    }

    /// Maps the part for the host to read and write.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::map_mut`](crate::RegularBuffer::map_mut).
    pub fn map_mut(&mut self, queue: &Queue) -> Result<ClMapMut<'_, T>> {
        self.part.object.map_mut(queue)
    }
}

impl<'a, T> Deref for SubBufferMut<'a, T> {
    type Target = SubBuffer<'a, T>;

    fn deref(&self) -> &Self::Target {
        &self.part
    }
}

impl<'a, T> From<&'a SubBuffer<'_, T>> for MemRef<'a, T> {
    fn from(part: &'a SubBuffer<'_, T>) -> Self {
        Self(&part.object)
    }
}

impl<T> fmt::Debug for SubBuffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubBuffer")
            .field("start", &self.start)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SubBufferMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt(f)
    }
}
