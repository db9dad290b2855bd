//! Copies from and to shared virtual memory.

use std::ffi::c_void;
use std::ops::Range;

use bytemuck::Pod;
use opencl_sys::cl_event;

use super::memory::Allocation;
use super::{SvmBuffer, SvmGrain};
use crate::api::slot;
use crate::buffer::bounds::{byte_range, same_length};
use crate::buffer::object::{BoxLayout, MemMut, MemRef, pattern_size};
use crate::buffer::pending::{HostMemory, Pending};
use crate::error::{Result, check, check_taken};
use crate::event::Event;
use crate::queue::Queue;

impl<T: Pod> SvmBuffer<T> {
    /// Copies the whole buffer into `out`, which has its length. It waits for the copy, and for
    /// kernels on other queues that use the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or an error from
    /// `clEnqueueSVMMemcpy`.
    #[doc(alias = "clEnqueueSVMMemcpy")]
    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        same_length("reading a buffer", self.len(), out.len())?;
        self.read_at(queue, 0, out)
    }

    /// Copies the elements from `offset` on into `out`, and waits as [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), or an error from `clEnqueueSVMMemcpy`.
    pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
        let range = byte_range::<T>(self.len(), offset, out.len())?;
        // SAFETY: `out` has the size of the range and may be written; the source lies in the
        // allocation.
        unsafe {
            self.allocation()
                .copy(queue, false, range, |here| (out.as_mut_ptr().cast(), here.cast_const()))
        }
    }

    /// Copies `data`, which has the buffer's length, into the buffer, and waits as
    /// [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or an error from
    /// `clEnqueueSVMMemcpy`.
    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        same_length("writing a buffer", self.len(), data.len())?;
        self.write_at(queue, 0, data)
    }

    /// Copies `data` into the buffer from `offset` on, and waits as [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), or an error from `clEnqueueSVMMemcpy`.
    pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
        let range = byte_range::<T>(self.len(), offset, data.len())?;
        // SAFETY: `data` has the size of the range; the target lies in the allocation, which is
        // borrowed exclusively.
        unsafe {
            self.allocation()
                .copy(queue, true, range, |here| (here, data.as_ptr().cast()))
        }
    }

    /// Enqueues a copy of the elements from `offset` on into `out`, as many as it holds, and
    /// returns `out` when the copy has ended. The copy is ordered by `queue`, after a wait for
    /// other queues that use the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), or an error from `clEnqueueSVMMemcpy`.
    pub fn read_async(&self, queue: &Queue, offset: usize, out: Vec<T>) -> Result<Pending<T>> {
        let range = byte_range::<T>(self.len(), offset, out.len())?;
        self.allocation().settle(queue, false)?;
        let memory = HostMemory::new(out);
        let here = self.allocation().start.0.wrapping_byte_add(range.start);
        // SAFETY: the source lies in the allocation; the memory has the size of the range and is
        // kept until the command has ended.
        let event = unsafe { self.allocation().copy_async(queue, memory.as_ptr(), here, range.len()) }?;
        Pending::flushed(event, memory)
    }

    /// Enqueues a copy of `data` into the buffer from `offset` on, and returns `data` when the
    /// copy has ended. It is ordered as [`read_async`](Self::read_async).
    ///
    /// # Errors
    ///
    /// As [`read_async`](Self::read_async).
    pub fn write_async(&mut self, queue: &Queue, offset: usize, data: Vec<T>) -> Result<Pending<T>> {
        let range = byte_range::<T>(self.len(), offset, data.len())?;
        self.allocation().settle(queue, true)?;
        let memory = HostMemory::new(data);
        let here = self.allocation().start.0.wrapping_byte_add(range.start);
        // SAFETY: as in `read_async`, and the target is borrowed exclusively.
        let event = unsafe { self.allocation().copy_async(queue, here, memory.as_ptr(), range.len()) }?;
        Pending::flushed(event, memory)
    }

    /// Enqueues a write of `value` to `count` elements from `offset` on, ordered as
    /// [`read_async`](Self::read_async).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), [`Error::TooLarge`](crate::Error::TooLarge) for an element
    /// whose size is not a power of two up to 128 bytes, or an error from `clEnqueueSVMMemFill`.
    #[doc(alias = "clEnqueueSVMMemFill")]
    pub fn fill(&mut self, queue: &Queue, offset: usize, count: usize, value: T) -> Result<Event> {
        let range = byte_range::<T>(self.len(), offset, count)?;
        let pattern = pattern_size::<T>()?;
        let allocation = self.allocation();
        let fill = slot!(allocation.context.api(), clEnqueueSVMMemFill)?;
        allocation.settle(queue, true)?;
        if range.is_empty() {
            return queue.record();
        }
        allocation.enqueue(
            queue,
            "clEnqueueSVMMemFill",
            // SAFETY: the queue is of the memory's context; the range lies in the allocation and is
            // a multiple of the pattern, which the driver copies before it returns.
            |event| unsafe {
                fill(
                    queue.raw(),
                    allocation.start.0.wrapping_byte_add(range.start),
                    (&raw const value).cast(),
                    pattern,
                    range.len(),
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            range.len(),
        )
    }

    /// Waits for every use of the memory on any queue, and undoes leaked maps.
    pub(crate) fn settle_all(&self, queue: &Queue) -> Result<()> {
        self.allocation().settle(queue, false)?;
        self.allocation().usage.wait()
    }

    /// Copies the whole buffer from memory of another context, which the driver has proven to
    /// accept, and waits.
    pub(crate) fn copy_from_address(&mut self, queue: &Queue, source: *const T, len: usize) -> Result<()> {
        same_length("copying shared virtual memory", self.len(), len)?;
        let range = byte_range::<T>(self.len(), 0, len)?;
        // SAFETY: the source has the size of the range and is not written meanwhile, since the
        // caller borrows it and has waited; the target is borrowed exclusively.
        unsafe { self.allocation().copy(queue, true, range, |here| (here, source.cast())) }
    }

    /// Enqueues a copy of `count` elements of `source` from `from` on, to `to` in this memory:
    /// between two buffer objects, or as a read of the source into the host's own memory. It is
    /// ordered as [`read_async`](Self::read_async) for both.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange),
    /// [`Error::ContextMismatch`](crate::Error::ContextMismatch), an error from `clCreateBuffer` or
    /// `clEnqueueCopyBuffer`; or for a read [`Error::Access`](crate::Error::Access) and an error
    /// from `clEnqueueReadBuffer`.
    pub fn copy_from<'a>(
        &mut self,
        queue: &Queue,
        to: usize,
        source: impl Into<MemRef<'a, T>>,
        from: usize,
        count: usize,
    ) -> Result<Event>
    where
        T: 'a,
    {
        let allocation = self.allocation();
        allocation.settle(queue, true)?;
        let source = source.into();
        if allocation.grain == SvmGrain::System {
            let range = byte_range::<T>(self.len(), to, count)?;
            let place = allocation.start.0.wrapping_byte_add(range.start);
            // SAFETY: the place has the size of the range and is borrowed exclusively; the
            // allocation's drop waits for the command, which is noted.
            let event = unsafe { source.0.read_into(queue, from, count, place) }?;
            allocation.usage.note(queue, queue.enqueued());
            return Ok(event);
        }
        self.view()?.object.copy_from(queue, to, source, from, count)
    }

    /// Enqueues a copy of `count` elements of `source` from `from` on, to `to` in this memory, by their addresses,
    /// ordered as [`read_async`](Self::read_async) for both.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange),
    /// [`Error::ContextMismatch`](crate::Error::ContextMismatch), or an error from `clEnqueueSVMMemcpy`.
    #[doc(alias = "clEnqueueSVMMemcpy")]
    pub fn copy_from_svm(
        &mut self,
        queue: &Queue,
        to: usize,
        source: &SvmBuffer<T>,
        from: usize,
        count: usize,
    ) -> Result<Event> {
        let target_range = byte_range::<T>(self.len(), to, count)?;
        let source_range = byte_range::<T>(source.len(), from, count)?;
        source.allocation().settle(queue, false)?;
        let allocation = self.allocation();
        allocation.settle(queue, true)?;
        let target = allocation.start.0.wrapping_byte_add(target_range.start);
        let place = source.allocation().start.0.wrapping_byte_add(source_range.start);
        // SAFETY: both ranges lie in their allocations, which differ because the target is borrowed exclusively; each
        // allocation's drop waits for the command, which is noted for both.
        let event = unsafe { allocation.copy_async(queue, target, place, target_range.len()) }?;
        source.note_use(queue);
        Ok(event)
    }

    /// Enqueues a copy of `count` elements from `from` on into the buffer object `target`, to `to` there: between two
    /// buffer objects, or as a write from the host's own memory. It is ordered as [`read_async`](Self::read_async) for
    /// both.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange),
    /// [`Error::ContextMismatch`](crate::Error::ContextMismatch), an error from `clCreateBuffer` or
    /// `clEnqueueCopyBuffer`; or for a write [`Error::Access`](crate::Error::Access) and an error from
    /// `clEnqueueWriteBuffer`.
    pub fn copy_into<'a>(
        &self,
        queue: &Queue,
        from: usize,
        target: impl Into<MemMut<'a, T>>,
        to: usize,
        count: usize,
    ) -> Result<Event>
    where
        T: 'a,
    {
        let allocation = self.allocation();
        let target = target.into().0;
        if allocation.grain == SvmGrain::System {
            let range = byte_range::<T>(self.len(), from, count)?;
            allocation.settle(queue, false)?;
            let place = allocation.start.0.wrapping_byte_add(range.start);
            // SAFETY: the place has the size of the range; the allocation's drop waits for the command, which is noted.
            let event = unsafe { target.write_from(queue, to, count, place) }?;
            allocation.note_use(queue);
            return Ok(event);
        }
        allocation.settle(queue, false)?;
        target.copy_from(queue, to, MemRef(&self.view()?.object), from, count)
    }

    /// Enqueues a copy of the box of `extent` (x, y, z) at `from` in `source`, to `to` in this memory, ordered as
    /// [`copy_from`](Self::copy_from).
    ///
    /// # Errors
    ///
    /// [`Error::Region`](crate::Error::Region), [`Error::Zero`](crate::Error::Zero), and as
    /// [`copy_from`](Self::copy_from).
    pub fn copy_box_from<'a>(
        &mut self,
        queue: &Queue,
        extent: [usize; 3],
        to: BoxLayout,
        source: impl Into<MemRef<'a, T>>,
        from: BoxLayout,
    ) -> Result<Event>
    where
        T: 'a,
    {
        let allocation = self.allocation();
        allocation.settle(queue, true)?;
        let source = source.into();
        if allocation.grain == SvmGrain::System {
            let place = (allocation.start.0, self.len());
            // SAFETY: as in `copy_from`, for the whole memory.
            let event = unsafe { source.0.read_box_into(queue, extent, from, place, to) }?;
            allocation.usage.note(queue, queue.enqueued());
            return Ok(event);
        }
        self.view()?.object.copy_box_from(queue, extent, to, source, from)
    }
}

impl Allocation {
    /// Copies to or from the range and waits.
    ///
    /// # Safety
    ///
    /// Given the start of the range, `ends` returns a target and a source of the range's size.
    unsafe fn copy(
        &self,
        queue: &Queue,
        exclusive: bool,
        range: Range<usize>,
        ends: impl FnOnce(*mut c_void) -> (*mut c_void, *const c_void),
    ) -> Result<()> {
        self.settle(queue, exclusive)?;
        if range.is_empty() {
            return Ok(());
        }
        let copy = slot!(self.context.api(), clEnqueueSVMMemcpy)?;
        let (target, source) = ends(self.start.0.wrapping_byte_add(range.start));
        let before = queue.enqueued();
        // SAFETY: the queue is of this context; the caller answers for both ends; the call blocks,
        // so that neither is used after it.
        let code = unsafe {
            copy(
                queue.raw(),
                opencl_sys::CL_TRUE,
                target,
                source,
                range.len(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clEnqueueSVMMemcpy({} bytes)", range.len()))?;
        queue.mark_ended(before);
        Ok(())
    }

    /// Enqueues a copy of `bytes` bytes, or a marker if there are none.
    ///
    /// # Safety
    ///
    /// `target` may be written and `source` read for `bytes` bytes until the command has ended; one
    /// of them lies in this allocation.
    unsafe fn copy_async(
        &self,
        queue: &Queue,
        target: *mut c_void,
        source: *const c_void,
        bytes: usize,
    ) -> Result<Event> {
        if bytes == 0 {
            return queue.record();
        }
        let copy = slot!(self.context.api(), clEnqueueSVMMemcpy)?;
        self.enqueue(
            queue,
            "clEnqueueSVMMemcpy",
            // SAFETY: the queue is of this context; the caller answers for both ends.
            |event| unsafe {
                copy(
                    queue.raw(),
                    opencl_sys::CL_FALSE,
                    target,
                    source,
                    bytes,
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            bytes,
        )
    }

    /// Enqueues a command that uses the memory and returns its event.
    fn enqueue(
        &self,
        queue: &Queue,
        call: &'static str,
        command: impl FnOnce(*mut cl_event) -> i32,
        bytes: usize,
    ) -> Result<Event> {
        let before = queue.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        check_taken(command(&raw mut event), || format!("{call}({bytes} bytes)"))?;
        self.note_use(queue);
        Ok(Event::new(event, queue, before, call))
    }
}
