//! OpenCL queues and HIP streams.

use std::sync::Arc;

use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::call::{Out, call, destroy};
use crate::handle::{Object, object};
use crate::status::hipcl_status;
use crate::values::{_cl_command_queue, ihipStream_t};

/// What a hipcl_queue points to.
pub enum hipcl_queue_s {}
/// An in-order OpenCL queue of a bridge.
pub type hipcl_queue = *mut hipcl_queue_s;

/// What a hipcl_stream points to.
pub enum hipcl_stream_s {}
/// A HIP stream of a bridge.
pub type hipcl_stream = *mut hipcl_stream_s;

pub(crate) struct QueueObject(pub(crate) clmgr::Queue);
object!(QueueObject, hipcl_queue_s, Queue);

pub(crate) struct StreamObject(pub(crate) Arc<hip::Stream>);
object!(StreamObject, hipcl_stream_s, Stream);

/// Creates an in-order OpenCL queue in the bridge's context.
///
/// @param bridge  A bridge.
/// @param queue   Receives the queue, which the caller destroys with hipcl_queue_destroy().
///
/// Errors: HIPCL_ERROR_OPENCL if OpenCL refuses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_queue_create(bridge: hipcl_bridge, queue: *mut hipcl_queue) -> hipcl_status {
    call("hipcl_queue_create", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(queue, "queue") }?;
        place.publish(QueueObject(BridgeObject::of(bridge, "bridge")?.0.queue()?))
    })
}

/// The queue of the bridge's own transfers: the one that hipcl_bridge_adopt() was given, or one of the bridge.
///
/// @param bridge  A bridge.
/// @param queue   Receives a new handle of it, which the caller destroys with hipcl_queue_destroy(); the queue itself
///                lives as long as the bridge and its objects.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_queue_main(bridge: hipcl_bridge, queue: *mut hipcl_queue) -> hipcl_status {
    call("hipcl_queue_main", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(queue, "queue") }?;
        place.publish(QueueObject(BridgeObject::of(bridge, "bridge")?.0.main_queue().clone()))
    })
}

/// Takes a queue that the caller created in the bridge's context. One that has a handle already becomes another handle of
/// the same queue. It is retained, and released once the handle and all
/// that was used on it are gone; the caller's own reference stays the caller's.
///
/// @param bridge  A bridge.
/// @param native  A living, in-order cl_command_queue.
/// @param queue   Receives the handle, which the caller destroys with hipcl_queue_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for null, for a queue of another context, and for one that executes out of order.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_queue_adopt(
    bridge: hipcl_bridge,
    native: *mut _cl_command_queue,
    queue: *mut hipcl_queue,
) -> hipcl_status {
    call("hipcl_queue_adopt", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(queue, "queue") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        // SAFETY: null, which is refused, or the C caller's living queue.
        let queue = unsafe { bridge.0.adopt_queue(native.cast()) }?;
        place.publish(QueueObject(queue))
    })
}

/// The cl_command_queue of a queue, for calls of OpenCL. Work on shared memory needs an access first
/// (hipcl_access_begin_queue()).
///
/// @param queue   A queue.
/// @param native  Receives the handle. It is not retained: it lasts as long as the queue.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_queue_native(queue: hipcl_queue, native: *mut *mut _cl_command_queue) -> hipcl_status {
    call("hipcl_queue_native", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(native, "native") }?;
        place.set(QueueObject::of(queue, "queue")?.0.raw().cast());
        Ok(())
    })
}

/// Waits for all work on the queue (clFinish).
///
/// Errors: HIPCL_ERROR_OPENCL if work failed.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_queue_finish(queue: hipcl_queue) -> hipcl_status {
    call("hipcl_queue_finish", || {
        Ok(QueueObject::of(queue, "queue")?.0.finish()?)
    })
}

/// Destroys the handle. Work on the queue goes on; the queue itself is released once nothing needs it any more. An
/// access that is open on it stays open.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_queue_destroy(queue: hipcl_queue) -> hipcl_status {
    destroy::<QueueObject>("hipcl_queue_destroy", queue, "queue")
}

/// Creates a HIP stream on the bridge's device.
///
/// @param bridge  A bridge.
/// @param stream  Receives the stream, which the caller destroys with hipcl_stream_destroy().
///
/// Errors: HIPCL_ERROR_HIP if HIP refuses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_stream_create(bridge: hipcl_bridge, stream: *mut hipcl_stream) -> hipcl_status {
    call("hipcl_stream_create", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(stream, "stream") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.publish(StreamObject(bridge.known(bridge.0.stream()?)))
    })
}

/// The stream of the bridge's own transfers: the one that hipcl_bridge_adopt() was given, or one of the bridge.
///
/// @param bridge  A bridge.
/// @param stream  Receives a new handle of it, which the caller destroys with hipcl_stream_destroy(); the stream itself
///                lives as long as the bridge and its objects.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_stream_main(bridge: hipcl_bridge, stream: *mut hipcl_stream) -> hipcl_status {
    call("hipcl_stream_main", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(stream, "stream") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.publish(StreamObject(bridge.known(bridge.0.main_stream().clone())))
    })
}

/// Takes a stream that the caller created. One that has a handle already, of this function or of the library's own,
/// becomes another handle of the same stream. HIP does not count references: the caller destroys the stream only after
/// the handle and all that was used on it (buffers, programs, BLAS handles, the bridge) are destroyed. Nothing captures
/// the stream during a call.
///
/// @param bridge  A bridge.
/// @param native  A living hipStream_t of the bridge's device, from the HIP library that the bridge uses; null for the
///                default stream.
/// @param stream  Receives the handle, which the caller destroys with hipcl_stream_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for a stream of another device, HIPCL_ERROR_NOT_SUPPORTED for hipStreamPerThread,
/// HIPCL_ERROR_HIP if HIP does not know it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_stream_adopt(
    bridge: hipcl_bridge,
    native: *mut ihipStream_t,
    stream: *mut hipcl_stream,
) -> hipcl_status {
    call("hipcl_stream_adopt", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(stream, "stream") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        // SAFETY: null or the C caller's stream, which outlives all that is used on it and is not captured during calls.
        place.publish(StreamObject(unsafe { bridge.stream(native) }?))
    })
}

/// The hipStream_t of a stream, for calls of HIP and its libraries. Work on shared memory needs an access first
/// (hipcl_access_begin_stream()).
///
/// @param stream  A stream.
/// @param native  Receives the handle, null for the default stream. It lasts as long as the stream.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_stream_native(stream: hipcl_stream, native: *mut *mut ihipStream_t) -> hipcl_status {
    call("hipcl_stream_native", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(native, "native") }?;
        place.set(StreamObject::of(stream, "stream")?.0.raw().cast());
        Ok(())
    })
}

/// Waits for all work on the stream (hipStreamSynchronize).
///
/// Errors: HIPCL_ERROR_HIP if work failed.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_stream_synchronize(stream: hipcl_stream) -> hipcl_status {
    call("hipcl_stream_synchronize", || {
        Ok(StreamObject::of(stream, "stream")?.0.synchronize()?)
    })
}

/// Destroys the handle. A stream of the library is destroyed once nothing needs it any more; the last owner first waits
/// for the stream's work, also on an adopted stream. So this call can block, and is not for a host function of HIP. An
/// access that is open on the stream stays open.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_stream_destroy(stream: hipcl_stream) -> hipcl_status {
    destroy::<StreamObject>("hipcl_stream_destroy", stream, "stream")
}
