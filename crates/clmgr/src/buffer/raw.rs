//! Transfers by raw handles and pointers, for memory whose owner orders its uses itself.

use std::ffi::c_void;

use opencl_sys::{CL_FALSE, cl_event, cl_int, cl_mem};

use crate::api::slot;
use crate::error::{Result, check_taken};
use crate::event::Event;
use crate::queue::Queue;

/// Each enqueues one command, submits it, and returns its event. No buffer of this crate records the use
/// ([`RegularBuffer::note_use`](crate::RegularBuffer::note_use)).
impl Queue {
    /// Enqueues a copy of `bytes` bytes from host memory to a buffer object, from its byte `begin` on.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueWriteBuffer`, or from `clFlush`.
    ///
    /// # Safety
    ///
    /// * `object` is alive, of the queue's context, and has `bytes` bytes from `begin` on.
    /// * `data` has `bytes` bytes. Until the command has ended, nothing writes them, and no other work uses those of the
    ///   object. If the call fails after the command was enqueued (`clFlush`), that is when the queue has finished.
    #[doc(alias = "clEnqueueWriteBuffer")]
    pub unsafe fn write_raw(&self, object: cl_mem, begin: usize, data: *const c_void, bytes: usize) -> Result<Event> {
        let write = slot!(self.context().api(), clEnqueueWriteBuffer)?;
        let none = std::ptr::null();
        self.command("clEnqueueWriteBuffer", (begin, bytes), |event| {
            // SAFETY: the queue is alive; the caller answers for the object and the host memory.
            unsafe { write(self.raw(), object, CL_FALSE, begin, bytes, data, 0, none, event) }
        })
    }

    /// Enqueues a copy of `bytes` bytes to host memory from a buffer object, from its byte `begin` on.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueReadBuffer`, or from `clFlush`.
    ///
    /// # Safety
    ///
    /// As [`write_raw`](Self::write_raw), where nothing else uses the bytes at `out`, and no other work writes those of the
    /// object.
    #[doc(alias = "clEnqueueReadBuffer")]
    pub unsafe fn read_raw(&self, object: cl_mem, begin: usize, out: *mut c_void, bytes: usize) -> Result<Event> {
        let read = slot!(self.context().api(), clEnqueueReadBuffer)?;
        let none = std::ptr::null();
        self.command("clEnqueueReadBuffer", (begin, bytes), |event| {
            // SAFETY: as in `write_raw`.
            unsafe { read(self.raw(), object, CL_FALSE, begin, bytes, out, 0, none, event) }
        })
    }

    /// Enqueues a copy of `bytes` bytes between two addresses, of which one or both are in shared virtual memory.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueSVMMemcpy`, or from `clFlush`.
    ///
    /// # Safety
    ///
    /// * `bytes` bytes are at both; they do not overlap, and what is shared virtual memory is the queue's context's.
    /// * Until the command has ended, nothing else uses those at `to`, and nothing writes those at `from`. If the call
    ///   fails after the command was enqueued (`clFlush`), that is when the queue has finished.
    #[doc(alias = "clEnqueueSVMMemcpy")]
    pub unsafe fn copy_raw(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<Event> {
        let copy = slot!(self.context().api(), clEnqueueSVMMemcpy)?;
        let none = std::ptr::null();
        self.command("clEnqueueSVMMemcpy", (0, bytes), |event| {
            // SAFETY: the queue is alive; the caller answers for both addresses.
            unsafe { copy(self.raw(), CL_FALSE, to, from, bytes, 0, none, event) }
        })
    }

    fn command(
        &self,
        call: &'static str,
        (begin, bytes): (usize, usize),
        enqueue: impl FnOnce(*mut cl_event) -> cl_int,
    ) -> Result<Event> {
        let before = self.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        check_taken(enqueue(&raw mut event), || format!("{call}({bytes} bytes at {begin})"))?;
        self.note_enqueued();
        let event = Event::new(event, self, before, call);
        event.flush()?;
        Ok(event)
    }
}
