//! What orders queues: waiting for an event, and recording one.

use opencl_sys::cl_event;

use super::{Event, UserEvent};
use crate::api::slot;
use crate::error::{Error, Result, check_taken};
use crate::queue::Queue;

impl Queue {
    /// Makes every later command of this queue wait for `event`, also one of another queue of the same context.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`], or an error from `clEnqueueBarrierWithWaitList`.
    #[doc(alias = "clEnqueueBarrierWithWaitList")]
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        if event.context() != self.context() {
            return Err(Error::ContextMismatch { what: "the event" });
        }
        // Commands of a queue that was never flushed may never start, and this queue would wait
        // for them for ever.
        if event.queue() != Some(self) {
            event.flush()?;
        }
        let barrier = slot!(self.context().api(), clEnqueueBarrierWithWaitList)?;
        let list = [event.raw()];
        // SAFETY: queue and event are alive and of one context; the barrier's own event is not asked for.
        let code = unsafe { barrier(self.raw(), 1, list.as_ptr(), std::ptr::null_mut()) };
        check_taken(code, || "clEnqueueBarrierWithWaitList(1 event)".to_owned())?;
        self.note_enqueued();
        Ok(())
    }

    /// Makes every later command of this queue wait for `event`, which may be of another context.
    ///
    /// OpenCL takes events only within one context. Between two, the end of the event calls back,
    /// and the callback ends a user event of this queue's context: the host's threads take part, but
    /// none waits. If the event fails, the waiting commands still run; every query of the event returns
    /// the failure.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueBarrierWithWaitList`, `clCreateUserEvent` or `clSetEventCallback`.
    pub fn wait_for_any(&self, event: &Event) -> Result<()> {
        if event.context() == self.context() {
            return self.wait_for(event);
        }
        let bridge = UserEvent::new(self.context())?;
        let here = bridge.event().clone();
        event.end_with(bridge)?;
        event.flush()?;
        self.wait_for(&here)
    }

    /// Makes every later command of this queue wait for what is enqueued on `other` so far, which
    /// may be of another context, as [`wait_for_any`](Self::wait_for_any).
    ///
    /// # Errors
    ///
    /// As [`wait_for_any`](Self::wait_for_any), or an error from `clEnqueueMarkerWithWaitList`.
    pub fn wait_for_queue(&self, other: &Queue) -> Result<()> {
        if self == other {
            return Ok(());
        }
        self.wait_for_any(&other.record()?)
    }

    /// An event that ends when every command enqueued so far has ended.
    ///
    /// # Errors
    ///
    /// An error from `clEnqueueMarkerWithWaitList`.
    #[doc(alias = "clEnqueueMarkerWithWaitList")]
    pub fn record(&self) -> Result<Event> {
        let marker = slot!(self.context().api(), clEnqueueMarkerWithWaitList)?;
        let before = self.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        // SAFETY: the queue is alive; an empty list means all earlier commands; `event` is a valid
        // place.
        let code = unsafe { marker(self.raw(), 0, std::ptr::null(), &raw mut event) };
        check_taken(code, || "clEnqueueMarkerWithWaitList".to_owned())?;
        self.note_enqueued();
        Ok(Event::new(event, self, before, "clEnqueueMarkerWithWaitList"))
    }
}
