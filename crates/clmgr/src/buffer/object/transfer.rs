//! Reads, writes, fills and copies of a buffer object.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;

use bytemuck::Pod;

use super::{Object, Wish};
use crate::api::slot;
use crate::buffer::bounds::{byte_range, same_length};
use crate::buffer::pending::{HostMemory, Pending};
use crate::error::{Error, Result, check};
use crate::event::Event;
use crate::queue::Queue;

/// A buffer object as the source of a copy.
///
/// Made by `From` from a reference to any type over a buffer object.
pub struct MemRef<'a, T>(pub(crate) &'a Object<T>);

impl<T> fmt::Debug for MemRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemRef")
            .field("len", &self.0.len())
            .finish_non_exhaustive()
    }
}

impl<T> Clone for MemRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MemRef<'_, T> {}

/// A buffer object as the target of a copy between contexts.
///
/// Made by `From` from an exclusive reference to any type over a buffer object.
pub struct MemMut<'a, T>(pub(crate) &'a mut Object<T>);

impl<T> fmt::Debug for MemMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemMut")
            .field("len", &self.0.len())
            .finish_non_exhaustive()
    }
}

/// Checks that OpenCL can fill memory with elements of this size.
pub(in crate::buffer) fn pattern_size<T>() -> Result<usize> {
    let size = size_of::<T>();
    if size.is_power_of_two() && size <= 128 {
        return Ok(size);
    }
    Err(Error::TooLarge {
        what: "a fill with elements of a size other than 1, 2, 4, 8, 16, 32, 64 or 128 bytes",
        got: format!("{size} bytes"),
        limit: 128,
    })
}

impl<T: Pod> Object<T> {
    /// The bytes of a range that the host may read or write.
    pub fn host_range(&self, offset: usize, count: usize, write: bool) -> Result<Range<usize>> {
        self.allow(if write { Wish::Write } else { Wish::Read })?;
        byte_range::<T>(self.len(), offset, count)
    }

    pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
        let range = byte_range::<T>(self.len(), offset, out.len())?;
        let read = slot!(self.context().api(), clEnqueueReadBuffer)?;
        self.allow(Wish::Read)?;
        self.settle(queue, false)?;
        if range.is_empty() {
            return Ok(());
        }
        let before = queue.enqueued();
        // SAFETY: queue and buffer are alive and of one context; the range lies in the buffer and
        // `out` has its size; the call blocks, so that `out` is not used after it.
        let code = unsafe {
            read(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                range.start,
                range.len(),
                out.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || {
            format!("clEnqueueReadBuffer({} bytes at {})", range.len(), range.start)
        })?;
        queue.mark_ended(before);
        Ok(())
    }

    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        same_length("reading a buffer", self.len(), out.len())?;
        self.read_at(queue, 0, out)
    }

    pub fn read_async(&self, queue: &Queue, offset: usize, out: Vec<T>) -> Result<Pending<T>> {
        let count = out.len();
        let memory = HostMemory::new(out);
        // SAFETY: `memory` has room for the elements and is kept until the command has ended.
        let event = unsafe { self.read_into(queue, offset, count, memory.as_ptr()) }?;
        Pending::flushed(event, memory)
    }

    /// Enqueues a copy of `count` elements from `offset` on to `out`.
    ///
    /// # Safety
    ///
    /// `out` may be written for that many elements until the command has ended.
    pub unsafe fn read_into(&self, queue: &Queue, offset: usize, count: usize, out: *mut c_void) -> Result<Event> {
        let range = byte_range::<T>(self.len(), offset, count)?;
        let read = slot!(self.context().api(), clEnqueueReadBuffer)?;
        self.allow(Wish::Read)?;
        self.settle(queue, false)?;
        if range.is_empty() {
            return queue.record();
        }
        self.enqueue(
            queue,
            "clEnqueueReadBuffer",
            // SAFETY: queue and buffer are alive and of one context; the range lies in the buffer;
            // the caller answers for `out`.
            |event| unsafe {
                read(
                    queue.raw(),
                    self.raw(),
                    opencl_sys::CL_FALSE,
                    range.start,
                    range.len(),
                    out,
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || format!("{} bytes at {}", range.len(), range.start),
        )
    }

    pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
        let range = byte_range::<T>(self.len(), offset, data.len())?;
        let write = slot!(self.context().api(), clEnqueueWriteBuffer)?;
        self.allow(Wish::Write)?;
        self.settle(queue, true)?;
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: as in `read_at`; `data` is only read.
        let code = unsafe {
            write(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                range.start,
                range.len(),
                data.as_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || {
            format!("clEnqueueWriteBuffer({} bytes at {})", range.len(), range.start)
        })?;
        // A blocking write need only have read `data` when it returns, and the wait may fail.
        self.note_use(queue);
        queue.drain()
    }

    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        same_length("writing a buffer", self.len(), data.len())?;
        self.write_at(queue, 0, data)
    }

    pub fn write_async(&mut self, queue: &Queue, offset: usize, data: Vec<T>) -> Result<Pending<T>> {
        let count = data.len();
        let memory = HostMemory::new(data);
        // SAFETY: `memory` holds the elements and is kept until the command has ended.
        let event = unsafe { self.write_from(queue, offset, count, memory.as_ptr()) }?;
        Pending::flushed(event, memory)
    }

    /// Enqueues a copy of `count` elements at `data` to the elements from `offset` on.
    ///
    /// # Safety
    ///
    /// `data` holds that many elements until the command has ended.
    pub unsafe fn write_from(
        &mut self,
        queue: &Queue,
        offset: usize,
        count: usize,
        data: *const c_void,
    ) -> Result<Event> {
        let range = byte_range::<T>(self.len(), offset, count)?;
        let write = slot!(self.context().api(), clEnqueueWriteBuffer)?;
        self.allow(Wish::Write)?;
        self.settle(queue, true)?;
        if range.is_empty() {
            return queue.record();
        }
        self.enqueue(
            queue,
            "clEnqueueWriteBuffer",
            // SAFETY: as in `read_into`.
            |event| unsafe {
                write(
                    queue.raw(),
                    self.raw(),
                    opencl_sys::CL_FALSE,
                    range.start,
                    range.len(),
                    data,
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || format!("{} bytes at {}", range.len(), range.start),
        )
    }

    pub fn fill(&mut self, queue: &Queue, offset: usize, count: usize, value: T) -> Result<Event> {
        let range = byte_range::<T>(self.len(), offset, count)?;
        let pattern = pattern_size::<T>()?;
        let fill = slot!(self.context().api(), clEnqueueFillBuffer)?;
        self.settle(queue, true)?;
        if range.is_empty() {
            return queue.record();
        }
        self.enqueue(
            queue,
            "clEnqueueFillBuffer",
            // SAFETY: queue and buffer are alive and of one context; the range lies in the buffer
            // and is a multiple of the pattern, which the driver copies before it returns.
            |event| unsafe {
                fill(
                    queue.raw(),
                    self.raw(),
                    (&raw const value).cast(),
                    pattern,
                    range.start,
                    range.len(),
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || format!("{} bytes at {}", range.len(), range.start),
        )
    }

    /// Copies `count` elements of `source` from `from` on to `to`.
    pub fn copy_from(
        &mut self,
        queue: &Queue,
        to: usize,
        source: MemRef<'_, T>,
        from: usize,
        count: usize,
    ) -> Result<Event> {
        let source = source.0;
        let target_range = byte_range::<T>(self.len(), to, count)?;
        let source_range = byte_range::<T>(source.len(), from, count)?;
        let copy = slot!(self.context().api(), clEnqueueCopyBuffer)?;
        self.settle(queue, true)?;
        source.settle(queue, false)?;
        if count == 0 {
            return queue.record();
        }
        let event = self.enqueue(
            queue,
            "clEnqueueCopyBuffer",
            // SAFETY: the queue and both buffers are alive and of one context, and the ranges lie
            // in them.
            |event| unsafe {
                copy(
                    queue.raw(),
                    source.raw(),
                    self.raw(),
                    source_range.start,
                    target_range.start,
                    source_range.len(),
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || {
                format!(
                    "{} bytes from {} to {}",
                    source_range.len(),
                    source_range.start,
                    target_range.start
                )
            },
        )?;
        source.usage().note(queue, queue.enqueued());
        Ok(event)
    }
}
