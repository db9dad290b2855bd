//! The end of what was enqueued on an OpenCL queue.

use clmgr::Event;

use crate::call::{Out, call, destroy};
use crate::handle::{Object, object};
use crate::queue::{QueueObject, hipcl_queue};
use crate::status::hipcl_status;
use crate::values::_cl_event;

/// What a hipcl_event points to.
pub enum hipcl_event_s {}
/// The end of a command on an OpenCL queue.
pub type hipcl_event = *mut hipcl_event_s;

pub(crate) struct EventObject(pub(crate) Event);
object!(EventObject, hipcl_event_s, Event);

/// The end of all that is enqueued on a queue by now.
///
/// @param queue  A queue.
/// @param event  Receives the event, which the caller destroys with hipcl_event_destroy().
///
/// Errors: HIPCL_ERROR_OPENCL if OpenCL refuses it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_queue_record(queue: hipcl_queue, event: *mut hipcl_event) -> hipcl_status {
    call("hipcl_queue_record", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(event, "event") }?;
        place.publish(EventObject(QueueObject::of(queue, "queue")?.0.record()?))
    })
}

/// Waits until the command has ended.
///
/// Errors: HIPCL_ERROR_OPENCL if it failed.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_event_wait(event: hipcl_event) -> hipcl_status {
    call("hipcl_event_wait", || Ok(EventObject::of(event, "event")?.0.wait()?))
}

/// Whether the command has ended. Does not wait.
///
/// @param event        An event.
/// @param is_complete  Receives 1 if it has ended, else 0.
///
/// Errors: HIPCL_ERROR_OPENCL if it failed.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_event_is_complete(event: hipcl_event, is_complete: *mut i32) -> hipcl_status {
    call("hipcl_event_is_complete", || {
        // SAFETY: the C caller's place for an int.
        let place = unsafe { Out::new(is_complete, "is_complete") }?;
        place.set(EventObject::of(event, "event")?.0.is_complete()?.into());
        Ok(())
    })
}

/// The cl_event of an event, for calls of OpenCL.
///
/// @param event   An event.
/// @param native  Receives the handle. It is not retained: it lasts until hipcl_event_destroy().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_event_native(event: hipcl_event, native: *mut *mut _cl_event) -> hipcl_status {
    call("hipcl_event_native", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(native, "native") }?;
        place.set(EventObject::of(event, "event")?.0.raw().cast());
        Ok(())
    })
}

/// Destroys the handle. It does not wait: the command runs on.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_event_destroy(event: hipcl_event) -> hipcl_status {
    destroy::<EventObject>("hipcl_event_destroy", event, "event")
}
