//! What `RegularBuffer` and `HostPtrBuffer` share: a `cl_mem` of `T`.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use opencl_sys::{cl_mem, cl_mem_flags};

use super::map::{Mapped, Maps};
use super::{byte_range, same_length};
use crate::api::slot;
use crate::context::Context;
use crate::error::{Error, Result, bytes_of, check};
use crate::handle::Handle;
use crate::queue::Queue;
use crate::usage::Usage;

/// A buffer object, known to the context's registry for as long as it lives.
pub(super) struct Object<T> {
    raw: Handle,
    context: Context,
    usage: Arc<Usage>,
    maps: Maps,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Object<T> {
    /// # Safety
    ///
    /// `host` is null, or points at memory for `len` elements that outlives every command that uses
    /// the object, and `flags` say how it is used.
    pub unsafe fn create(
        context: &Context,
        flags: cl_mem_flags,
        len: usize,
        host: *mut c_void,
    ) -> Result<Self> {
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
        check(code, || {
            format!("clCreateBuffer({bytes} bytes, flags 0x{flags:X})")
        })?;
        let raw = Handle(raw);
        context.registry().add_object(raw, &usage);
        Ok(Self {
            raw,
            context: context.clone(),
            usage,
            maps: Maps::default(),
            len,
            element: PhantomData,
        })
    }

    pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
        let range = byte_range::<T>(self.len, offset, out.len())?;
        let read = slot!(self.context.api(), clEnqueueReadBuffer)?;
        self.transfer(queue, false, range, |range| {
            // SAFETY: queue and buffer are alive and of one context; the range lies in the buffer
            // and `out` has its size; the call blocks, so that `out` is not used after it.
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
                format!(
                    "clEnqueueReadBuffer({} bytes at {})",
                    range.len(),
                    range.start
                )
            })
        })
    }

    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        same_length("reading a buffer", self.len, out.len())?;
        self.read_at(queue, 0, out)
    }

    pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
        let range = byte_range::<T>(self.len, offset, data.len())?;
        let write = slot!(self.context.api(), clEnqueueWriteBuffer)?;
        self.transfer(queue, true, range, |range| {
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
                format!(
                    "clEnqueueWriteBuffer({} bytes at {})",
                    range.len(),
                    range.start
                )
            })?;
            // A blocking write need only have read `data` when it returns.
            queue.drain()
        })
    }

    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        same_length("writing a buffer", self.len, data.len())?;
        self.write_at(queue, 0, data)
    }
}

impl<T> Object<T> {
    /// A blocking transfer, ordered after what other queues do with the buffer.
    fn transfer(
        &self,
        queue: &Queue,
        exclusive: bool,
        range: Range<usize>,
        work: impl FnOnce(&Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.settle(queue, exclusive)?;
        if range.is_empty() {
            return Ok(());
        }
        let before = queue.enqueued();
        work(&range)?;
        queue.mark_ended(before);
        Ok(())
    }

    /// Undoes leaked maps and waits for what other queues still do with the buffer.
    fn settle(&self, queue: &Queue, exclusive: bool) -> Result<()> {
        if queue.context() != &self.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        for map in self.maps.take_leaked(exclusive) {
            self.unmap(&map)?;
        }
        self.usage.wait_except(queue)
    }

    fn unmap(&self, map: &Mapped) -> Result<()> {
        let unmap = slot!(self.context.api(), clEnqueueUnmapMemObject)?;
        // SAFETY: the pointer is one that a map of this buffer gave and that was not undone yet.
        let code = unsafe {
            unmap(
                map.queue.raw(),
                self.raw(),
                map.pointer.0,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clEnqueueUnmapMemObject".to_owned())?;
        self.note_use(&map.queue);
        Ok(())
    }

    pub fn map(&self, queue: &Queue) -> Result<ClMap<'_, T>>
    where
        T: Pod,
    {
        self.settle(queue, false)?;
        let pointer = self.map_raw(queue, opencl_sys::CL_MAP_READ, false)?;
        Ok(ClMap {
            object: self,
            queue: queue.clone(),
            pointer,
        })
    }

    pub fn map_mut(&mut self, queue: &Queue) -> Result<ClMapMut<'_, T>>
    where
        T: Pod,
    {
        self.settle(queue, true)?;
        let pointer = self.map_raw(
            queue,
            opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE,
            true,
        )?;
        Ok(ClMapMut {
            object: self,
            queue: queue.clone(),
            pointer,
        })
    }

    fn map_raw(&self, queue: &Queue, flags: u64, writes: bool) -> Result<Handle> {
        let map = slot!(self.context.api(), clEnqueueMapBuffer)?;
        let bytes = self.bytes();
        let before = queue.enqueued();
        let mut code = 0;
        // SAFETY: queue and buffer are alive and of one context; the range is the whole buffer;
        // `code` is a valid place. The call blocks, so that the pointer may be used at once.
        let pointer = unsafe {
            map(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                flags,
                0,
                bytes,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        check(code, || format!("clEnqueueMapBuffer({bytes} bytes)"))?;
        queue.mark_ended(before);
        let pointer = Handle(pointer);
        let mapped = Mapped {
            queue: queue.clone(),
            pointer,
            writes,
        };
        if pointer.0.is_null() || !pointer.0.cast::<T>().is_aligned() {
            self.unmap(&mapped)?;
            return Err(Error::NotSupported {
                what: "mapping a buffer".to_owned(),
                device: self.context.device().name().to_owned(),
                reason: format!(
                    "the map is at {:p}, which does not suit its elements",
                    pointer.0
                ),
            });
        }
        self.maps.add(mapped);
        Ok(pointer)
    }

    /// Undoes the map of a guard.
    fn end_map(&self, queue: &Queue, pointer: Handle, writes: bool) -> Result<()> {
        self.maps.remove(pointer, writes);
        self.unmap(&Mapped {
            queue: queue.clone(),
            pointer,
            writes,
        })
    }

    pub fn note_use(&self, queue: &Queue) {
        self.usage.note(queue, queue.note_enqueued());
    }

    /// Waits until nothing enqueued uses the buffer; also undoes leaked maps.
    pub fn quiesce(&mut self) -> Result<()> {
        for map in self.maps.take_leaked(true) {
            self.unmap(&map)?;
        }
        self.usage.wait()
    }

    pub fn raw(&self) -> cl_mem {
        self.raw.0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        self.context.registry().remove_object(self.raw);
        if let Some(release) = self.context.api().clReleaseMemObject {
            // SAFETY: this is the one reference that the creation gave. OpenCL keeps the object
            // until the commands that use it have ended.
            unsafe { release(self.raw.0) };
        }
    }
}

/// A buffer object mapped for the host to read.
pub struct ClMap<'a, T: Pod> {
    object: &'a Object<T>,
    queue: Queue,
    pointer: Handle,
}

/// A buffer object mapped for the host to read and write.
pub struct ClMapMut<'a, T: Pod> {
    object: &'a mut Object<T>,
    queue: Queue,
    pointer: Handle,
}

macro_rules! guard {
    ($guard:ident, $writes:literal) => {
        impl<T: Pod> $guard<'_, T> {
            /// Ends the map and returns the error that a drop would keep for the queue's next
            /// [`finish`](Queue::finish).
            ///
            /// # Errors
            ///
            /// What `clEnqueueUnmapMemObject` answers.
            pub fn unmap(self) -> Result<()> {
                let guard = std::mem::ManuallyDrop::new(self);
                let ended = guard.object.end_map(&guard.queue, guard.pointer, $writes);
                // SAFETY: the guard is not used or dropped again, and the queue is its only part
                // that needs a drop.
                drop(unsafe { std::ptr::read(&raw const guard.queue) });
                ended
            }
        }

        impl<T: Pod> Deref for $guard<'_, T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                // SAFETY: the map gave an aligned pointer to the whole buffer, which stays mapped
                // for as long as the guard lives; `T: Pod` takes any bytes. The device does not
                // write meanwhile: earlier commands have ended, and `Kernel::launch` makes its
                // caller promise it for later ones.
                unsafe { std::slice::from_raw_parts(self.pointer.0.cast(), self.object.len) }
            }
        }

        impl<T: Pod> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                if let Err(error) = self.object.end_map(&self.queue, self.pointer, $writes) {
                    self.queue.defer(error);
                }
            }
        }
    };
}

guard!(ClMap, false);
guard!(ClMapMut, true);

impl<T: Pod> DerefMut for ClMapMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the buffer is borrowed exclusively, so that this is the only map.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.0.cast(), self.object.len) }
    }
}
