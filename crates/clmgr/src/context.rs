//! A context of exactly one device.

use std::fmt;
use std::sync::{Arc, Once, OnceLock};

use opencl_sys::{cl_context, cl_context_properties};

use crate::api::{Api, slot};
use crate::deferred::Deferred;
use crate::device::Device;
use crate::ending::{self, First};
use crate::error::{Error, Result, check};
use crate::handle::{Handle, Live};
use crate::usage::Registry;

/// An OpenCL context of one device. A clone is cheap; the last one releases the context.
///
/// It never has a second device: on ROCm a context of several devices moves shared virtual
/// memory to the host and keeps a copy of each buffer per device.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    raw: Handle,
    device: Device,
    registry: Registry,
    /// Errors from dropped queues and pools.
    deferred: Arc<Deferred>,
    /// Made on demand; `None` if that failed.
    order_token: OnceLock<Option<Handle>>,
    waited: Once,
}

static LIVE: Live<Inner> = Live::new();

const TOKEN_BYTES: usize = 128;

impl Context {
    /// Creates a context of `device`.
    ///
    /// # Errors
    ///
    /// An error from `clCreateContext`.
    #[doc(alias = "clCreateContext")]
    pub fn new(device: &Device) -> Result<Self> {
        let api = device.api();
        let create = slot!(api, clCreateContext)?;
        slot!(api, clReleaseContext)?;
        let properties: [cl_context_properties; 3] = [
            opencl_sys::CL_CONTEXT_PLATFORM,
            device.raw_platform() as cl_context_properties,
            0,
        ];
        let id = device.raw();
        let mut code = 0;
        // SAFETY: the properties end with zero and name the device's own platform; one device is
        // given; there is no callback; `code` is a valid place.
        let raw = unsafe {
            create(
                properties.as_ptr(),
                1,
                &raw const id,
                None,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        check(code, || format!("clCreateContext(`{}`)", device.name()))?;
        ending::register_behind(device.raw_platform().addr(), First::Context);
        Ok(Self::enter(Handle(raw), device))
    }

    /// The value for a handle; the caller gives up one reference.
    fn enter(raw: Handle, device: &Device) -> Self {
        let value = Arc::new(Inner {
            raw,
            device: device.clone(),
            registry: Registry::default(),
            deferred: Arc::default(),
            order_token: OnceLock::new(),
            waited: Once::new(),
        });
        Self(LIVE.enter(raw, value))
    }

    /// The value for a context that someone else created. It is retained, once for all its uses.
    ///
    /// # Safety
    ///
    /// `raw` is a live context of the device's library, and `device` is one of its devices.
    pub(crate) unsafe fn adopt(device: &Device, raw: cl_context) -> Result<Self> {
        let raw = Handle(raw);
        if let Some(known) = LIVE.find(raw) {
            return Ok(Self(known));
        }
        slot!(device.api(), clReleaseContext)?;
        let retain = slot!(device.api(), clRetainContext)?;
        // SAFETY: the caller's promise.
        check(unsafe { retain(raw.0) }, || "clRetainContext".to_owned())?;
        // If another thread was quicker, its value is given and this reference released.
        Ok(Self::enter(raw, device))
    }

    /// The context's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The functions for the context's objects.
    #[must_use]
    pub fn api(&self) -> &Api {
        self.0.device.api()
    }

    /// The context's handle, valid for as long as a clone of this value lives.
    #[must_use]
    pub fn raw(&self) -> cl_context {
        self.0.raw.0
    }

    /// A small shared virtual memory block that kernels are declared to write, so OpenCL keeps them in order; see
    /// [`Kernel::launch`](crate::Kernel::launch).
    pub(crate) fn order_token(&self) -> Option<Handle> {
        *self.0.order_token.get_or_init(|| {
            let (alloc, _) = (self.api().clSVMAlloc?, self.api().clSVMFree?);
            let flags = opencl_sys::CL_MEM_READ_WRITE;
            // SAFETY: the context is alive; alignment zero means that of the largest OpenCL type.
            let start = unsafe { alloc(self.raw(), flags, TOKEN_BYTES, 0) };
            (!start.is_null()).then_some(Handle(start))
        })
    }

    /// The errors from releases in a `Drop`, oldest first, that no [`finish`](crate::Queue::finish)
    /// returned before the queue or its pool was dropped.
    #[must_use]
    pub fn take_deferred_errors(&self) -> Vec<Error> {
        self.0.deferred.take()
    }

    /// To be called when a wait for the device has returned: a command has run.
    pub(crate) fn note_wait(&self) {
        self.0.waited.call_once(|| self.did(First::Wait));
    }

    /// The driver has done this, maybe for the first time.
    pub(crate) fn did(&self, first: First) {
        ending::register_behind(self.device().raw_platform().addr(), first);
    }

    pub(crate) fn deferred(&self) -> &Arc<Deferred> {
        &self.0.deferred
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.0.raw == other.0.raw
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("device", &self.0.device.name())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        LIVE.leave(self.raw, self);
        if let (Some(Some(token)), Some(free)) = (self.order_token.get(), self.device.api().clSVMFree) {
            // SAFETY: it is from `clSVMAlloc` of this context, and no kernel touches it: it is only
            // named.
            unsafe { free(self.raw.0, token.0) };
        }
        if let Some(release) = self.device.api().clReleaseContext {
            // SAFETY: this is the one reference that `clCreateContext` or `clRetainContext` gave.
            unsafe { release(self.raw.0) };
        }
    }
}
