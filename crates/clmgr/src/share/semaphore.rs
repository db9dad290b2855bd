//! Semaphores.

use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use opencl_sys::{cl_event, cl_semaphore_khr, cl_semaphore_properties_khr};

use super::{function, refused, require};
use crate::api::extension::{
    clCreateSemaphoreWithPropertiesKHR, clEnqueueSignalSemaphoresKHR, clEnqueueWaitSemaphoresKHR,
    clGetSemaphoreHandleForTypeKHR, clReleaseSemaphoreKHR,
};
use crate::context::Context;
use crate::device::SemaphoreKind;
use crate::error::{Error, Result, check, check_taken};
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::Queue;

/// A binary semaphore: each wait takes one signal.
///
/// The signal comes first: a wait may be enqueued once its signal is on its way to the device.
/// [`signal`](Self::signal) therefore flushes its queue, and [`wait`](Self::wait) refuses a semaphore that only this
/// process can signal but has not signalled.
pub struct Semaphore {
    raw: Handle,
    context: Context,
    functions: Functions,
    /// Whether the device received a signal that no wait has taken.
    signalled: AtomicBool,
    /// Whether another API may signal it too.
    shared: AtomicBool,
}

struct Functions {
    wait: clEnqueueWaitSemaphoresKHR,
    signal: clEnqueueSignalSemaphoresKHR,
    release: clReleaseSemaphoreKHR,
}

impl Semaphore {
    /// A new semaphore, for the commands of OpenCL alone.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with the missing extension, or an error from `clCreateSemaphoreWithPropertiesKHR`.
    #[doc(alias = "clCreateSemaphoreWithPropertiesKHR")]
    pub fn new(context: &Context) -> Result<Self> {
        Self::create(context, "creating a semaphore", &[])
    }

    /// A new semaphore that can be exported by this kind of descriptor.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn exportable(context: &Context, kind: SemaphoreKind) -> Result<Self> {
        let what = format!("exporting a semaphore by {kind}");
        require_kind(context, &what, kind)?;
        let properties = [
            opencl_sys::CL_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR,
            u64::from(kind.0),
            opencl_sys::CL_SEMAPHORE_EXPORT_HANDLE_TYPES_LIST_END_KHR,
        ];
        Self::create(context, &what, &properties)
    }

    /// The semaphore that another API exported. The descriptor is consumed; if the import is
    /// refused, it is closed.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// `fd` is a semaphore of this kind.
    pub unsafe fn import(context: &Context, kind: SemaphoreKind, fd: OwnedFd) -> Result<Self> {
        let what = format!("importing a semaphore by {kind}");
        require_kind(context, &what, kind)?;
        let descriptor = u64::try_from(fd.as_raw_fd()).unwrap_or(u64::MAX);
        let semaphore = Self::create(context, &what, &[kind.0.into(), descriptor])?;
        // The import owns the descriptor from now on.
        let _consumed = fd.into_raw_fd();
        semaphore.shared.store(true, Ordering::SeqCst);
        Ok(semaphore)
    }

    fn create(context: &Context, what: &str, further: &[cl_semaphore_properties_khr]) -> Result<Self> {
        let device = context.device();
        require(device, what, "cl_khr_semaphore")?;
        // SAFETY: `cl_khr_semaphore` gives these names these types.
        let (create, functions) = unsafe {
            (
                function::<clCreateSemaphoreWithPropertiesKHR>(device, c"clCreateSemaphoreWithPropertiesKHR")?,
                Functions {
                    wait: function(device, c"clEnqueueWaitSemaphoresKHR")?,
                    signal: function(device, c"clEnqueueSignalSemaphoresKHR")?,
                    release: function(device, c"clReleaseSemaphoreKHR")?,
                },
            )
        };
        let create = create.ok_or_else(|| Error::missing("clCreateSemaphoreWithPropertiesKHR"))?;
        let mut properties = vec![
            u64::from(opencl_sys::CL_SEMAPHORE_TYPE_KHR),
            u64::from(opencl_sys::CL_SEMAPHORE_TYPE_BINARY_KHR),
        ];
        properties.extend_from_slice(further);
        properties.push(0);
        let mut code = 0;
        // SAFETY: the context is alive; the list ends with zero; `code` is a valid place.
        let raw = unsafe { create(context.raw(), properties.as_ptr(), &raw mut code) };
        check_taken(code, || format!("clCreateSemaphoreWithPropertiesKHR({what})"))?;
        Ok(Self {
            raw: Handle(raw),
            context: context.clone(),
            functions,
            signalled: AtomicBool::new(false),
            shared: AtomicBool::new(false),
        })
    }

    /// A descriptor of the semaphore for another API, which the caller owns.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with the missing extension, or an error from `clGetSemaphoreHandleForTypeKHR`, e.g. for
    /// a semaphore that is not exportable.
    #[doc(alias = "clGetSemaphoreHandleForTypeKHR")]
    pub fn export(&self, kind: SemaphoreKind) -> Result<OwnedFd> {
        let device = self.context.device();
        require_kind(&self.context, &format!("exporting a semaphore by {kind}"), kind)?;
        // SAFETY: `cl_khr_external_semaphore` gives this name this type.
        let get = unsafe { function::<clGetSemaphoreHandleForTypeKHR>(device, c"clGetSemaphoreHandleForTypeKHR") }?
            .ok_or_else(|| Error::missing("clGetSemaphoreHandleForTypeKHR"))?;
        let mut fd: RawFd = -1;
        // SAFETY: semaphore and device are alive; a handle of this kind is a descriptor, for which
        // there is room.
        let code = unsafe {
            get(
                self.raw.0,
                device.raw(),
                kind.0,
                size_of::<RawFd>(),
                (&raw mut fd).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clGetSemaphoreHandleForTypeKHR({kind})"))?;
        if fd < 0 {
            return Err(refused(
                device,
                format!("exporting a semaphore by {kind}"),
                "the driver returned no file descriptor",
            ));
        }
        self.shared.store(true, Ordering::SeqCst);
        // SAFETY: the driver gave the descriptor to the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Makes every later command of `queue` wait for a signal.
    ///
    /// The device must already have received the signal: on NVIDIA's OpenCL (driver 580) a wait
    /// that is enqueued before its signal is submitted blocks the signal too, and neither ends. A
    /// signal that is held behind a [`UserEvent`](crate::UserEvent) is not submitted until that ends,
    /// also if its queue was flushed; so is one of another API that has not been enqueued there.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`]; [`Error::NotSignalled`] for a semaphore that was neither imported nor exported, and
    /// not [signalled](Self::signal) since the last wait; an error from `clEnqueueWaitSemaphoresKHR`.
    #[doc(alias = "clEnqueueWaitSemaphoresKHR")]
    pub fn wait(&self, queue: &Queue) -> Result<Event> {
        let taken = self.signalled.swap(false, Ordering::SeqCst);
        if !taken && !self.shared.load(Ordering::SeqCst) {
            return Err(Error::NotSignalled);
        }
        let waited = self.enqueue(queue, "clEnqueueWaitSemaphoresKHR", self.functions.wait);
        if taken && waited.is_err() {
            self.signalled.store(true, Ordering::SeqCst);
        }
        waited
    }

    /// Signals when every earlier command of `queue` has ended, and flushes the queue.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`], or an error from `clEnqueueSignalSemaphoresKHR` or `clFlush`.
    #[doc(alias = "clEnqueueSignalSemaphoresKHR")]
    pub fn signal(&self, queue: &Queue) -> Result<Event> {
        let event = self.enqueue(queue, "clEnqueueSignalSemaphoresKHR", self.functions.signal)?;
        // Enqueued is signalled, sooner or later, whatever the flush says.
        self.signalled.store(true, Ordering::SeqCst);
        queue.flush()?;
        Ok(event)
    }

    fn enqueue(&self, queue: &Queue, call: &'static str, command: clEnqueueWaitSemaphoresKHR) -> Result<Event> {
        if queue.context() != &self.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        let command = command.ok_or_else(|| Error::missing(call))?;
        let before = queue.enqueued();
        let list: [cl_semaphore_khr; 1] = [self.raw.0];
        let mut event: cl_event = std::ptr::null_mut();
        // SAFETY: queue and semaphore are alive and of one context; a binary semaphore has no
        // payload; `event` is a valid place.
        let code = unsafe {
            command(
                queue.raw(),
                1,
                list.as_ptr(),
                std::ptr::null(),
                0,
                std::ptr::null(),
                &raw mut event,
            )
        };
        check_taken(code, || format!("{call}(1 semaphore)"))?;
        queue.note_enqueued();
        Ok(Event::new(event, queue, before, call))
    }
}

/// That the device has external semaphores of this kind.
fn require_kind(context: &Context, what: &str, kind: SemaphoreKind) -> Result<()> {
    let device = context.device();
    require(device, what, "cl_khr_semaphore")?;
    require(device, what, "cl_khr_external_semaphore")?;
    match kind.extension() {
        Some(extension) => require(device, what, extension),
        None => Err(refused(device, what, "this crate does not know this kind of handle")),
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").finish_non_exhaustive()
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        if let Some(release) = self.functions.release {
            // SAFETY: this is the one reference that the creation gave. The extension keeps the
            // semaphore until the commands that use it have ended.
            unsafe { release(self.raw.0) };
        }
    }
}
