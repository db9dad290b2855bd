//! A bridge on objects that other code created.

use clmgr::opencl_sys::{cl_command_queue, cl_context, cl_device_id};
use platform::Selection;

use super::open::{Libraries, Pair};
use super::{Bridge, Options, pairing};
use crate::values::Pairing;
use crate::{Error, Result};

/// Handles of other code: a library that created its own context and hands it over.
#[derive(Clone, Copy, Debug)]
pub struct ForeignObjects {
    /// A context of one device.
    pub context: cl_context,
    /// That device.
    pub device: cl_device_id,
    /// An in-order queue of the context.
    pub queue: cl_command_queue,
    /// A HIP stream, null for the default stream of the HIP device.
    pub stream: hip_sys::hipStream_t,
}

impl Bridge {
    /// A bridge in a context that other code created, on its queue and its stream.
    ///
    /// Context and queue are retained for as long as the bridge and its buffers live; a HIP stream
    /// has no reference count. The bridge's own transfers go through the queue and the stream, in
    /// order with their owner's work. A hand-off waits for everything in them, the owner's work
    /// included. Copies that the owner makes through its own function table are not counted.
    ///
    /// The HIP device is that of the stream, or for the default stream the first that pairs with `device`;
    /// [`Options::hip_device`] can name it.
    ///
    /// # Errors
    /// [`Error::ForeignDevice`] for a device of none of the libraries found,
    /// [`Error::SeveralDevices`] for a context of more than one device, [`Error::OtherOwner`] for a
    /// queue of another context; [`Error::NoPair`], [`Error::NotPossible`] and driver errors as
    /// [`open`](Self::open). [`Options::opencl_device`] is not used.
    ///
    /// # Safety
    /// * Context, device and queue are alive and belong to an OpenCL library of this process.
    /// * The stream is null or a living one of the selected platform's HIP library, and its owner
    ///   destroys it only after the bridge, its clones and all that was used on the stream are gone:
    ///   buffers, modules and executable graphs. It is not `hipStreamPerThread`, which is refused.
    /// * Its owner does not begin a capture of it while another thread makes a call with the bridge
    ///   or what belongs to it. Calls during a capture are refused
    ///   ([`hip::Stream::from_raw`](hip::Stream::from_raw)).
    pub unsafe fn adopt(selection: &Selection, objects: ForeignObjects, options: &Options) -> Result<Self> {
        let libraries = Libraries::load(selection)?;
        let devices = libraries.manager.devices();
        let device = devices
            .iter()
            .find(|device| device.raw() == objects.device)
            .ok_or(Error::ForeignDevice {
                looked_at: devices.len(),
            })?;
        let external = libraries.manager.external(device);
        // SAFETY: the caller's promise about the context.
        let count = unsafe { external.device_count(objects.context) }?;
        if count != 1 {
            return Err(Error::SeveralDevices { count });
        }
        // SAFETY: the caller's promise about context and queue.
        let (context, queue) = unsafe { (external.context(objects.context)?, external.queue(objects.queue)?) };
        if queue.context() != &context || context.device() != device {
            return Err(Error::OtherOwner {
                what: "queue",
                owner: "context or device",
            });
        }
        // SAFETY: the caller's promise about the stream.
        let (stream, paired_by) = unsafe { stream_beside(&libraries, device, objects.stream, options.hip_device) }?;
        let queue = clmgr::Queue::clone(&queue);
        libraries.join(
            Pair {
                context,
                queue,
                stream,
                paired_by,
                first_calls: Vec::new(),
            },
            options,
        )
    }

    /// A queue that other code created in the bridge's context, for guards and launches in order with its owner's work.
    /// It is retained until the last clone is dropped.
    ///
    /// # Errors
    /// [`Error::OtherOwner`] for a queue of another context, and as [`clmgr::ExternalContexts::queue`]: for one that
    /// executes out of order, for example.
    ///
    /// # Safety
    /// The queue is alive and belongs to the bridge's OpenCL library, or to a driver of its ICD loader.
    pub unsafe fn adopt_queue(&self, queue: cl_command_queue) -> Result<clmgr::Queue> {
        // SAFETY: the caller's promise.
        let queue = unsafe { self.core.external.queue(queue) }?;
        if queue.context() != &self.core.context {
            return Err(Error::OtherOwner {
                what: "queue",
                owner: "context",
            });
        }
        Ok(clmgr::Queue::clone(&queue))
    }
}

/// The stream on this HIP device, or if none is named on the first device that pairs with the OpenCL device and has the
/// stream.
///
/// # Safety
/// As [`Bridge::adopt`] about the stream.
unsafe fn stream_beside(
    libraries: &Libraries<'_>,
    device: &clmgr::Device,
    raw: hip_sys::hipStream_t,
    named: Option<usize>,
) -> Result<(hip::Stream, Pairing)> {
    let on = |ordinal: usize| {
        let hip_device = libraries.hip.device(ordinal)?;
        let paired_by = pairing::of(libraries.platform(), &hip_device, device)?;
        // SAFETY: the caller's promise.
        let stream = unsafe { hip::Stream::from_raw(&hip_device, raw, ()) }?;
        Ok((stream, paired_by))
    };
    if let Some(ordinal) = named {
        return on(ordinal);
    }
    let mut refused = None;
    // A machine without any yields device 0's error.
    for ordinal in 0..libraries.hip.device_count()?.max(1) {
        match on(ordinal) {
            // What is wrong with the device that pairs says more.
            Err(Error::NoPair { .. }) if refused.is_some() => {}
            Err(error) => refused = Some(error),
            found => return found,
        }
    }
    Err(refused.unwrap_or(Error::ForeignDevice { looked_at: 0 }))
}
