//! A `cl_mem` of `T`, which the types over buffer objects share.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | [`Object`]: the handle, what is known about it, and its release |
//! | `transfer.rs`, `rect.rs` | reads, writes, fills and copies, of ranges and of boxes |
//! | `map.rs` | maps into the host's memory |
//! | `sub.rs` | parts of a buffer |
//! | `methods.rs` | the public methods of every type over an object, as a macro |

mod map;
mod methods;
mod rect;
mod sub;
mod transfer;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::Pod;
pub use map::{ClMap, ClMapMut};
pub(crate) use methods::{object_field, object_methods};
use opencl_sys::{cl_event, cl_int, cl_mem, cl_mem_flags};
pub use rect::BoxLayout;
pub use sub::{SubBuffer, SubBufferMut};
pub(super) use transfer::pattern_size;
pub use transfer::{MemMut, MemRef};

use super::mapped::Maps;
use crate::access::BufferAccess;
use crate::api::slot;
use crate::context::Context;
use crate::error::{Error, Result, bytes_of, check, check_taken};
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::Queue;
use crate::usage::Usage;

/// A buffer object, known to the context's registry for as long as it lives.
pub(crate) struct Object<T> {
    raw: Handle,
    context: Context,
    usage: Arc<Usage>,
    maps: Arc<Maps>,
    access: BufferAccess,
    len: usize,
    element: PhantomData<T>,
}

/// What the host wants to do with a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Read,
    Write,
}

impl<T: Pod> Object<T> {
    /// # Safety
    ///
    /// `host` is null, or points at memory for `len` elements that outlives every command that uses
    /// the object, and `flags` say how it is used.
    pub unsafe fn create(context: &Context, flags: cl_mem_flags, len: usize, host: *mut c_void) -> Result<Self> {
        let bytes = bytes_of::<T>("the length of a buffer", len)?;
        let limit = context.device().max_alloc_bytes();
        if bytes as u64 > limit {
            return Err(Error::TooLarge {
                what: "the size of a buffer",
                got: format!("{bytes} bytes"),
                limit,
            });
        }
        // SAFETY: the caller's promise, and the size is that of the elements.
        unsafe { Self::create_with(context, flags, len, bytes, host, Arc::default()) }
    }

    /// # Safety
    ///
    /// As [`create`](Self::create), for memory of `bytes` bytes.
    pub unsafe fn create_with(
        context: &Context,
        flags: cl_mem_flags,
        len: usize,
        bytes: usize,
        host: *mut c_void,
        usage: Arc<Usage>,
    ) -> Result<Self> {
        let create = slot!(context.api(), clCreateBuffer)?;
        let mut code = 0;
        // SAFETY: the context is alive; the caller answers for `host`; `code` is a valid place.
        let raw = unsafe { create(context.raw(), flags, bytes, host, &raw mut code) };
        check(code, || format!("clCreateBuffer({bytes} bytes, flags 0x{flags:X})"))?;
        let access = BufferAccess::from_flags(flags);
        // SAFETY: the handle is the new object's one reference, and it has this size.
        Ok(unsafe { Self::own(context, raw, access, len, usage, Arc::default()) })
    }

    /// # Safety
    ///
    /// `raw` is a buffer of `context` with room for `len` elements, and the caller gives up one reference to it.
    pub unsafe fn own(
        context: &Context,
        raw: cl_mem,
        access: BufferAccess,
        len: usize,
        usage: Arc<Usage>,
        maps: Arc<Maps>,
    ) -> Self {
        let raw = Handle(raw);
        let usage = context.registry().add_object(raw, access, usage);
        Self {
            raw,
            context: context.clone(),
            usage,
            maps,
            access,
            len,
            element: PhantomData,
        }
    }
}

impl<T> Object<T> {
    /// That the buffer's flags let the host do this.
    pub fn allow(&self, wish: Wish) -> Result<()> {
        let (allowed, what) = match wish {
            Wish::Read => (self.access.host_reads(), "reading it from the host"),
            Wish::Write => (self.access.host_writes(), "writing it from the host"),
        };
        if allowed {
            return Ok(());
        }
        Err(Error::Access {
            what: what.to_owned(),
            access: self.access,
        })
    }

    /// Undoes leaked maps and waits for what other queues still do with the buffer.
    pub fn settle(&self, queue: &Queue, exclusive: bool) -> Result<()> {
        if queue.context() != &self.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        self.maps.undo_leaked(exclusive, |map| self.unmap(map))?;
        self.usage.wait_except(queue)
    }

    /// Enqueues a command that uses the buffer and returns its event.
    pub fn enqueue(
        &self,
        queue: &Queue,
        call: &'static str,
        command: impl FnOnce(*mut cl_event) -> cl_int,
        arguments: impl FnOnce() -> String,
    ) -> Result<Event> {
        let before = queue.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        check_taken(command(&raw mut event), || format!("{call}({})", arguments()))?;
        self.note_use(queue);
        Ok(Event::new(event, queue, before, call))
    }

    pub fn note_use(&self, queue: &Queue) {
        self.usage.note(queue, queue.note_enqueued());
    }

    /// Undoes leaked maps and waits until nothing enqueued uses the buffer, for a drop: the queues
    /// keep what fails. Returns whether nothing uses it any more.
    pub fn quiesce_in_drop(&mut self) -> bool {
        let unmapped = self.unmap_in_drop();
        self.usage.wait_in_drop() && unmapped
    }

    /// Undoes every map, since no guard of one is alive; the queues keep what fails. Returns whether
    /// none is left.
    pub fn unmap_in_drop(&self) -> bool {
        self.maps.undo_in_drop(|map| self.unmap(map))
    }

    /// The same object with other elements; the caller knows that they fit.
    pub fn retype<U>(self, len: usize) -> Object<U> {
        let parts = ManuallyDrop::new(self);
        // SAFETY: each part is read once, and what it was read from is not dropped.
        unsafe {
            Object {
                raw: parts.raw,
                context: std::ptr::read(&raw const parts.context),
                usage: std::ptr::read(&raw const parts.usage),
                maps: std::ptr::read(&raw const parts.maps),
                access: parts.access,
                len,
                element: PhantomData,
            }
        }
    }

    pub fn raw(&self) -> cl_mem {
        self.raw.0
    }

    pub fn handle(&self) -> Handle {
        self.raw
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    pub fn access(&self) -> BufferAccess {
        self.access
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    pub fn maps(&self) -> &Arc<Maps> {
        &self.maps
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        if !self.maps.undo_of_in_drop(self.raw, |map| self.unmap(map)) {
            // It stays mapped, so that it is never released.
            return;
        }
        self.context.registry().remove_object(self.raw);
        if let Some(release) = self.context.api().clReleaseMemObject {
            // SAFETY: this is the one reference that the owner gave. OpenCL keeps the object until
            // the commands that use it have ended.
            unsafe { release(self.raw.0) };
        }
    }
}
