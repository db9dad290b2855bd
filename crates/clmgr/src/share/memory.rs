//! Memory of another API, imported by file descriptor.

use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use bytemuck::Pod;
use opencl_sys::{cl_event, cl_int, cl_mem_properties};

use super::{function, refused, require};
use crate::access::BufferAccess;
use crate::api::extension::{clEnqueueAcquireExternalMemObjectsKHR, clEnqueueReleaseExternalMemObjectsKHR};
use crate::api::slot;
use crate::buffer::Object;
use crate::context::Context;
use crate::device::{Device, HandleKind};
use crate::error::{Error, Result, bytes_of, check_taken};
use crate::event::Event;
use crate::kernel::Arg;
use crate::queue::Queue;

/// A buffer over memory that another API allocated and exported.
///
/// It may be used only between [`acquire`](Self::acquire) and the end of the guard: acquiring makes the other API's
/// writes visible, and releasing hands back what was written here. The caller must ensure that the other API has
/// finished by then, e.g. by a [`Semaphore`](super::Semaphore).
///
/// Dropping it hands back what is still acquired and waits for that: the exporter may free the memory next. (NVIDIA's
/// `clReleaseContext` never returns after a buffer was released that was not handed back; driver 580.)
pub struct ImportedBuffer<T> {
    object: Object<T>,
    kind: HandleKind,
    acquire: clEnqueueAcquireExternalMemObjectsKHR,
    release: clEnqueueReleaseExternalMemObjectsKHR,
    /// The queue of a guard that was leaked.
    acquired_on: Option<Queue>,
}

/// The extension that a kind of handle needs.
fn extension(kind: HandleKind) -> Option<&'static str> {
    match kind {
        HandleKind::OPAQUE_FD => Some("cl_khr_external_memory_opaque_fd"),
        HandleKind::DMA_BUF => Some("cl_khr_external_memory_dma_buf"),
        _ => None,
    }
}

impl Device {
    /// Checks that memory can be imported by this kind of handle, as far as the device reports.
    ///
    /// # Errors
    /// [`Error::NotSupported`](crate::Error::NotSupported) with the extension that is missing.
    pub fn check_memory_import(&self, kind: HandleKind) -> Result<()> {
        let what = format!("importing memory by {kind}");
        let Some(needed) = extension(kind) else {
            return Err(refused(self, what, "this crate does not know this kind of handle"));
        };
        require(self, &what, "cl_khr_external_memory")?;
        require(self, &what, needed)
    }
}

impl<T: Pod> ImportedBuffer<T> {
    /// Imports `len` elements for the context's device. The descriptor is consumed; if the import is
    /// refused, it is closed.
    ///
    /// # Errors
    ///
    /// As [`import_for`](Self::import_for).
    ///
    /// # Safety
    ///
    /// `fd` is of this kind and its memory has room for `len` elements. OpenCL does not check the
    /// size of every kind.
    #[doc(alias = "clCreateBufferWithProperties")]
    pub unsafe fn import(
        context: &Context,
        kind: HandleKind,
        fd: OwnedFd,
        len: usize,
        access: BufferAccess,
    ) -> Result<Self> {
        let device = [context.device().clone()];
        // SAFETY: the caller's promise.
        unsafe { Self::import_for(context, &device, kind, fd, len, access) }
    }

    /// As [`import`](Self::import), for these devices of the context, which a foreign context may
    /// have several of. Memory of one device may be out of another's reach: list those that are to
    /// use it.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`](crate::Error::NotSupported) with the missing extension or function;
    /// [`Error::ContextMismatch`](crate::Error::ContextMismatch) for a device of another library;
    /// [`Error::Zero`](crate::Error::Zero) for no element or no device,
    /// [`Error::TooLarge`](crate::Error::TooLarge), or an error from `clCreateBufferWithProperties`,
    /// e.g. `CL_INVALID_DEVICE` for a device that the context lacks.
    ///
    /// # Safety
    ///
    /// As [`import`](Self::import).
    #[doc(alias = "CL_MEM_DEVICE_HANDLE_LIST_KHR")]
    pub unsafe fn import_for(
        context: &Context,
        devices: &[Device],
        kind: HandleKind,
        fd: OwnedFd,
        len: usize,
        access: BufferAccess,
    ) -> Result<Self> {
        let bytes = bytes_of::<T>("the length of a buffer", len)?;
        if devices.is_empty() {
            return Err(Error::Zero {
                what: "the number of devices of an import",
            });
        }
        for device in devices {
            if !device.shares_library(context.device()) {
                return Err(Error::ContextMismatch {
                    what: "a device of an import",
                });
            }
            device.check_memory_import(kind)?;
        }
        let device = context.device();
        let create = slot!(context.api(), clCreateBufferWithProperties)?;
        // SAFETY: `cl_khr_external_memory` gives these names these types.
        let (acquire, release) = unsafe {
            (
                function::<clEnqueueAcquireExternalMemObjectsKHR>(device, c"clEnqueueAcquireExternalMemObjectsKHR")?,
                function::<clEnqueueReleaseExternalMemObjectsKHR>(device, c"clEnqueueReleaseExternalMemObjectsKHR")?,
            )
        };
        let descriptor = u64::try_from(fd.as_raw_fd()).unwrap_or(u64::MAX);
        let properties = properties(kind, descriptor, devices);
        let mut code = 0;
        // SAFETY: the list ends with zero and names devices of the context's library; the caller
        // answers for the descriptor; there is no host memory; `code` is a valid place.
        let raw = unsafe {
            create(
                context.raw(),
                properties.as_ptr(),
                access.flags(),
                bytes,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        check_taken(code, || {
            format!("clCreateBufferWithProperties({bytes} bytes by {kind})")
        })?;
        // The import owns the descriptor from now on.
        let _consumed = fd.into_raw_fd();
        // SAFETY: the handle is the new object's one reference, and it has this size.
        let object = unsafe { Object::own(context, raw, access, len, Arc::default(), Arc::default()) };
        Ok(Self {
            object,
            kind,
            acquire,
            release,
            acquired_on: None,
        })
    }

    /// Acquires the memory for commands of `queue`, until the guard is dropped.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueAcquireExternalMemObjectsKHR`.
    #[doc(alias = "clEnqueueAcquireExternalMemObjectsKHR")]
    pub fn acquire(&mut self, queue: &Queue) -> Result<AcquiredBuffer<'_, T>> {
        if let Some(leaked) = self.acquired_on.take() {
            self.hand_back(&leaked)?;
        }
        self.object.settle(queue, true)?;
        self.command(queue, "clEnqueueAcquireExternalMemObjectsKHR", self.acquire)?;
        self.acquired_on = Some(queue.clone());
        Ok(AcquiredBuffer { buffer: self })
    }
}

/// The properties of an import: the handle, the list of devices, the end.
fn properties(kind: HandleKind, descriptor: u64, devices: &[Device]) -> Vec<cl_mem_properties> {
    let mut properties = vec![kind.0.into(), descriptor, opencl_sys::CL_MEM_DEVICE_HANDLE_LIST_KHR];
    properties.extend(devices.iter().map(|device| device.raw().addr() as u64));
    properties.extend([opencl_sys::CL_MEM_DEVICE_HANDLE_LIST_END_KHR, 0]);
    properties
}

type Command = Option<
    unsafe extern "C" fn(
        opencl_sys::cl_command_queue,
        opencl_sys::cl_uint,
        *const opencl_sys::cl_mem,
        opencl_sys::cl_uint,
        *const cl_event,
        *mut cl_event,
    ) -> cl_int,
>;

impl<T: Pod> ImportedBuffer<T> {
    /// As [`acquire`](Self::acquire), for an owner that cannot keep a guard: the memory stays acquired until
    /// [`hand_over`](Self::hand_over), or the next guard.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn take_over(&mut self, queue: &Queue) -> Result<()> {
        let guard = self.acquire(queue)?;
        std::mem::forget(guard);
        Ok(())
    }

    /// Hands the memory back if it was acquired without a guard, and returns the event that ends when
    /// that is done.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueReleaseExternalMemObjectsKHR`; the memory then stays acquired.
    pub fn hand_over(&mut self) -> Result<Option<Event>> {
        let Some(queue) = &self.acquired_on else {
            return Ok(None);
        };
        let event = self.hand_back(queue)?;
        self.acquired_on = None;
        Ok(Some(event))
    }

    /// The buffer's handle, valid for as long as this value lives; for commands while the memory is
    /// taken over.
    #[must_use]
    pub fn raw(&self) -> opencl_sys::cl_mem {
        self.object.raw()
    }
}

impl<T> ImportedBuffer<T> {
    fn hand_back(&self, queue: &Queue) -> Result<Event> {
        let event = self.command(queue, "clEnqueueReleaseExternalMemObjectsKHR", self.release)?;
        queue.flush()?;
        Ok(event)
    }

    fn command(&self, queue: &Queue, call: &'static str, command: Command) -> Result<Event> {
        let Some(command) = command else {
            return Err(crate::Error::missing(call));
        };
        let list = [self.object.raw()];
        self.object.enqueue(
            queue,
            call,
            // SAFETY: queue and buffer are alive and of one context; `event` is a valid place.
            |event| unsafe { command(queue.raw(), 1, list.as_ptr(), 0, std::ptr::null(), event) },
            || "1 buffer".to_owned(),
        )
    }

    /// The number of elements; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.object.len()
    }

    /// How it was imported.
    #[must_use]
    pub fn kind(&self) -> HandleKind {
        self.kind
    }
}

impl<T> Drop for ImportedBuffer<T> {
    fn drop(&mut self) {
        if let Some(queue) = self.acquired_on.take()
            && let Err(error) = self.hand_back(&queue)
        {
            queue.defer(error);
        }
        // The commands of guards that are gone, too: the exporter may free the memory next. What cannot be waited for is an
        // error that the queue keeps.
        self.object.quiesce_in_drop();
    }
}

impl<T> fmt::Debug for ImportedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedBuffer")
            .field("len", &self.len())
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// An [`ImportedBuffer`] that OpenCL may use. Its drop hands the memory back, on the queue that acquired it.
pub struct AcquiredBuffer<'a, T: Pod> {
    buffer: &'a mut ImportedBuffer<T>,
}

impl<T: Pod> fmt::Debug for AcquiredBuffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquiredBuffer")
            .field("buffer", &self.buffer)
            .finish_non_exhaustive()
    }
}

impl<T: Pod> AcquiredBuffer<'_, T> {
    /// Copies the whole buffer into `out`, which has its length, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read`](crate::RegularBuffer::read).
    pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
        self.buffer.object.read(queue, out)
    }

    /// Copies the elements from `offset` on into `out`, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::read_at`](crate::RegularBuffer::read_at).
    pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
        self.buffer.object.read_at(queue, offset, out)
    }

    /// Copies `data`, which has the buffer's length, into the buffer, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write`](crate::RegularBuffer::write).
    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        self.buffer.object.write(queue, data)
    }

    /// Copies `data` into the buffer from `offset` on, and waits.
    ///
    /// # Errors
    ///
    /// As [`RegularBuffer::write_at`](crate::RegularBuffer::write_at).
    pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
        self.buffer.object.write_at(queue, offset, data)
    }

    /// The buffer as a kernel's argument.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        Arg::Mem(self.buffer.object.raw())
    }

    /// Hands the memory back and returns the event that ends when that is done.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueReleaseExternalMemObjectsKHR`.
    #[doc(alias = "clEnqueueReleaseExternalMemObjectsKHR")]
    pub fn release(self) -> Result<Event> {
        match self.buffer.acquired_on.take() {
            Some(queue) => self.buffer.hand_back(&queue),
            None => unreachable!("a guard lives while its buffer is acquired"),
        }
    }
}

impl<T: Pod> Deref for AcquiredBuffer<'_, T> {
    type Target = ImportedBuffer<T>;

    fn deref(&self) -> &ImportedBuffer<T> {
        self.buffer
    }
}

impl<T: Pod> Drop for AcquiredBuffer<'_, T> {
    fn drop(&mut self) {
        if let Some(queue) = self.buffer.acquired_on.take()
            && let Err(error) = self.buffer.hand_back(&queue)
        {
            queue.defer(error);
        }
    }
}
