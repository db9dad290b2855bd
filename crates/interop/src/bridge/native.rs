//! The handles behind a bridge, for code that calls the C functions itself.

use clmgr::opencl_sys::{cl_command_queue, cl_context, cl_device_id, cl_platform_id};

use super::Bridge;

/// What C code needs to work in a bridge's place; [`Bridge::adopt`] is the way back.
///
/// All are valid while the bridge or a clone of it lives; release none of them. Work enqueued on
/// the queue or the stream is in order with the bridge's own transfers there, but no shared buffer
/// knows of it: take a guard for the queue or stream first, and use the memory only there and while
/// the guard lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeHandles {
    /// The OpenCL platform.
    pub platform: cl_platform_id,
    /// The one device of the context.
    pub device: cl_device_id,
    /// The OpenCL context.
    pub context: cl_context,
    /// The queue of the bridge's transfers, in order.
    pub queue: cl_command_queue,
    /// The HIP device's ordinal.
    pub hip_device: usize,
    /// The stream of the bridge's transfers; null for the default stream.
    pub stream: hip_sys::hipStream_t,
}

impl Bridge {
    /// The handles that the bridge works with.
    #[must_use]
    pub fn native_handles(&self) -> NativeHandles {
        let device = self.cl_device();
        NativeHandles {
            platform: device.raw_platform(),
            device: device.raw(),
            context: self.core.context.raw(),
            queue: self.core.queue.raw(),
            hip_device: self.core.hip_device.ordinal(),
            stream: self.core.stream.raw(),
        }
    }
}
