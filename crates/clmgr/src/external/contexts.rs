//! Where foreign handles are adopted.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use opencl_sys::{cl_command_queue, cl_context, cl_device_id, cl_mem};
use parking_lot::Mutex;

use super::info::{ExternalBufferInfo, parent_context};
use super::queue::ExternalQueue;
use crate::api::{Api, slot};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::query::{list, value};
use crate::queue::{Queue, WeakQueue};

/// The foreign contexts, queues and buffers of one OpenCL library.
///
/// A foreign object has one value however often it is adopted, and that value holds one reference,
/// which it releases with its last clone. Nothing is kept alive here.
#[derive(Clone)]
pub struct ExternalContexts(Arc<Inner>);

struct Inner {
    api: Api,
    devices: Vec<Device>,
    /// The queue that was last used for a context's buffers.
    queues: Mutex<HashMap<Handle, WeakQueue>>,
}

impl ExternalContexts {
    /// For the objects of the library that these devices came from.
    pub(crate) fn of(api: Api, devices: Vec<Device>) -> Self {
        Self(Arc::new(Inner {
            api,
            devices,
            queues: Mutex::default(),
        }))
    }

    /// A foreign context. If it has several devices, the first known device represents it.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] for a null handle or one without a known device, or an error from
    /// `clGetContextInfo`, e.g. `CL_INVALID_CONTEXT`.
    ///
    /// # Safety
    ///
    /// `raw` is null or a live context of this library, or the driver checks handles.
    pub unsafe fn context(&self, raw: cl_context) -> Result<Context> {
        // SAFETY: the caller's promise.
        let devices = unsafe { self.devices_of(raw) }?;
        let device = devices.first().ok_or(Error::Foreign {
            what: "the context",
            reason: "this manager knows none of its devices",
        })?;
        // SAFETY: the context was just asked for its devices, so it is alive.
        unsafe { Context::adopt(device, raw) }
    }

    /// The number of devices of a foreign context, known ones and others.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] for a null handle, or an error from `clGetContextInfo`.
    ///
    /// # Safety
    ///
    /// As [`context`](Self::context).
    pub unsafe fn device_count(&self, raw: cl_context) -> Result<usize> {
        // SAFETY: the caller's promise.
        Ok(unsafe { self.device_ids(raw) }?.len())
    }

    /// The known devices of a foreign context.
    ///
    /// # Safety
    ///
    /// As [`context`](Self::context).
    pub(super) unsafe fn devices_of(&self, raw: cl_context) -> Result<Vec<Device>> {
        // SAFETY: the caller's promise.
        let ids = unsafe { self.device_ids(raw) }?;
        Ok(ids.into_iter().filter_map(|id| self.device(id)).collect())
    }

    /// # Safety
    ///
    /// As [`context`](Self::context).
    unsafe fn device_ids(&self, raw: cl_context) -> Result<Vec<cl_device_id>> {
        not_null(raw.is_null(), "the context")?;
        let get = slot!(self.0.api, clGetContextInfo)?;
        let what = opencl_sys::CL_CONTEXT_DEVICES;
        // SAFETY: the caller's promise about the handle; the property is a list of device handles.
        unsafe {
            list::<cl_device_id>("clGetContextInfo", what, |size, place, needed| {
                get(raw, what, size, place, needed)
            })
        }
    }

    fn device(&self, id: cl_device_id) -> Option<Device> {
        self.0.devices.iter().find(|known| known.raw() == id).cloned()
    }

    /// A foreign queue. [`queue_for_buffer`](Self::queue_for_buffer) prefers it from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] for a null handle, an unknown device, or an out-of-order queue, whose
    /// commands nothing here could order; or an error from `clGetCommandQueueInfo`, e.g.
    /// `CL_INVALID_COMMAND_QUEUE`.
    ///
    /// # Safety
    ///
    /// `raw` is null or a live queue of this library, or the driver checks handles.
    pub unsafe fn queue(&self, raw: cl_command_queue) -> Result<ExternalQueue> {
        const WHAT: &str = "the queue";
        not_null(raw.is_null(), WHAT)?;
        let get = slot!(self.0.api, clGetCommandQueueInfo)?;
        let ask = |what| {
            move |size, place| {
                // SAFETY: the caller's promise about the handle; `place` has room for `size` bytes.
                unsafe { get(raw, what, size, place, std::ptr::null_mut()) }
            }
        };
        const CALL: &str = "clGetCommandQueueInfo";
        let (context, device, properties) = (
            opencl_sys::CL_QUEUE_CONTEXT,
            opencl_sys::CL_QUEUE_DEVICE,
            opencl_sys::CL_QUEUE_PROPERTIES,
        );
        // SAFETY: a context, a device and a bit field, by the specification.
        let (context, device, properties) = unsafe {
            (
                value::<cl_context>(CALL, context, ask(context))?,
                value::<cl_device_id>(CALL, device, ask(device))?,
                value::<u64>(CALL, properties, ask(properties))?,
            )
        };
        if properties & opencl_sys::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
            return Err(Error::Foreign {
                what: WHAT,
                reason: "it executes commands out of order; create it without that property",
            });
        }
        let device = self.device(device).ok_or(Error::Foreign {
            what: WHAT,
            reason: "this manager does not know its device",
        })?;
        // SAFETY: the queue is alive and keeps its context alive; both have this device.
        let context = unsafe { Context::adopt(&device, context) }?;
        if context.device() != &device {
            return Err(Error::Foreign {
                what: WHAT,
                reason: "its device is not the first device of its context; use a context of one device",
            });
        }
        let profiling = properties & opencl_sys::CL_QUEUE_PROFILING_ENABLE != 0;
        // SAFETY: the queue is alive, in order, and of this context and device.
        let queue = unsafe { Queue::adopt(&context, raw, profiling) }?;
        self.remember(&queue);
        Ok(ExternalQueue::new(queue))
    }

    /// Everything that OpenCL reports about a foreign buffer.
    ///
    /// # Errors
    ///
    /// As [`ExternalBufferInfo::query`].
    ///
    /// # Safety
    ///
    /// As [`ExternalBufferInfo::query`].
    pub unsafe fn buffer_info(&self, raw: cl_mem) -> Result<ExternalBufferInfo> {
        // SAFETY: the caller's promise.
        unsafe { ExternalBufferInfo::query(self, raw) }
    }

    /// A queue that commands for this buffer can go to: the foreign or own queue of the buffer's
    /// context that was used last and still lives, else a new one.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] as [`context`](Self::context), or an error from `clGetMemObjectInfo` or
    /// `clCreateCommandQueue`.
    ///
    /// # Safety
    ///
    /// As [`ExternalBufferInfo::query`].
    pub unsafe fn queue_for_buffer(&self, raw: cl_mem) -> Result<Queue> {
        // SAFETY: the caller's promise, and the context of a live buffer lives.
        let context = unsafe { self.context(parent_context(&self.0.api, raw)?) }?;
        let known = self
            .0
            .queues
            .lock()
            .get(&Handle(context.raw()))
            .and_then(WeakQueue::upgrade);
        if let Some(queue) = known {
            return Ok(queue);
        }
        let queue = context.queue()?;
        self.remember(&queue);
        Ok(queue)
    }

    fn remember(&self, queue: &Queue) {
        let mut queues = self.0.queues.lock();
        queues.retain(|_, queue| queue.upgrade().is_some());
        queues.insert(Handle(queue.context().raw()), queue.downgrade());
    }

    pub(super) fn api(&self) -> &Api {
        &self.0.api
    }
}

/// That a handle is not null.
pub(super) fn not_null(is_null: bool, what: &'static str) -> Result<()> {
    if is_null {
        return Err(Error::Foreign {
            what,
            reason: "its handle is null",
        });
    }
    Ok(())
}

impl fmt::Debug for ExternalContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalContexts")
            .field("devices", &self.0.devices)
            .finish_non_exhaustive()
    }
}
