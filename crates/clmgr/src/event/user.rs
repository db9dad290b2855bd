//! Events that the host ends.

use std::fmt;

use crate::api::{Api, slot};
use crate::context::Context;
use crate::error::{Result, check, check_taken};
use crate::event::Event;
use crate::event::end::{End, Failed};
use crate::handle::Handle;

/// An event that the host ends, for commands to wait for.
///
/// If dropped before that, it [fails](Self::fail), so that nothing waits for it forever.
///
/// OpenCL leaves open what happens if a buffer, a queue or any other object but an event is released while a command
/// waits for a user event (`clSetUserEventStatus`). Intel's CPU runtime and PoCL keep what enqueued commands use. With
/// another driver, end the event before you drop any of these.
pub struct UserEvent {
    event: Event,
    failed: Failed,
    ended: bool,
}

impl UserEvent {
    /// An event of `context` that has not ended.
    ///
    /// # Errors
    ///
    /// An error from `clCreateUserEvent`.
    #[doc(alias = "clCreateUserEvent")]
    pub fn new(context: &Context) -> Result<Self> {
        let create = slot!(context.api(), clCreateUserEvent)?;
        slot!(context.api(), clSetUserEventStatus)?;
        slot!(context.api(), clReleaseEvent)?;
        let mut code = 0;
        // SAFETY: the context is alive; `code` is a valid place.
        let raw = unsafe { create(context.raw(), &raw mut code) };
        check(code, || "clCreateUserEvent".to_owned())?;
        let failed = Failed::default();
        Ok(Self {
            event: Event::of_user(raw, context, End::of_user(&failed)),
            failed,
            ended: false,
        })
    }

    /// The event, for [`Queue::wait_for`](crate::Queue::wait_for).
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Ends the event. What waits for it may run before this returns.
    ///
    /// # Errors
    ///
    /// An error from `clSetUserEventStatus`.
    #[doc(alias = "clSetUserEventStatus")]
    pub fn complete(mut self) -> Result<()> {
        self.end()
    }

    /// Ends the event with an error. [`Event::wait`], [`Event::is_complete`], [`Event::on_complete`] and `.await`
    /// report it.
    ///
    /// Commands that wait for the event run, as after [`complete`](Self::complete): the driver only learns that the
    /// event has ended. If it learnt of the failure, the waiting queue could lose its order, on which the release of
    /// memory relies: PoCL then runs later commands of the queue beside earlier ones.
    ///
    /// # Errors
    ///
    /// An error from `clSetUserEventStatus`.
    pub fn fail(mut self) -> Result<()> {
        self.failed.note();
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let set = slot!(self.event.context().api(), clSetUserEventStatus)?;
        // SAFETY: the event is a live user event whose status was not set before.
        check_taken(unsafe { set(self.event.raw(), opencl_sys::CL_COMPLETE) }, || {
            "clSetUserEventStatus(CL_COMPLETE)".to_owned()
        })
    }

    /// Takes the handle, to be ended from a callback.
    pub(super) fn into_trigger(mut self) -> Result<Trigger> {
        let api = *self.event.context().api();
        let retain = slot!(api, clRetainEvent)?;
        // SAFETY: the event is alive.
        check(unsafe { retain(self.event.raw()) }, || "clRetainEvent".to_owned())?;
        self.ended = true;
        Ok(Trigger {
            raw: Handle(self.event.raw()),
            failed: self.failed.clone(),
            well: false,
            api,
        })
    }
}

impl fmt::Debug for UserEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserEvent").finish_non_exhaustive()
    }
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        if !self.ended {
            self.failed.note();
            // Its one error is that the event has ended already.
            let _ = self.end();
        }
    }
}

/// A user event as a callback keeps it: a reference to the event alone. The last reference to a
/// context or a queue must not be released inside a driver's callback.
pub(super) struct Trigger {
    raw: Handle,
    failed: Failed,
    well: bool,
    api: Api,
}

impl Trigger {
    /// Ends the event, well or not.
    pub fn pull(mut self, well: bool) {
        self.well = well;
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if !self.well {
            self.failed.note();
        }
        let (Some(set), Some(release)) = (self.api.clSetUserEventStatus, self.api.clReleaseEvent) else {
            return;
        };
        // SAFETY: the event is a live user event whose status was not set before, and this
        // reference is released once.
        unsafe {
            set(self.raw.0, opencl_sys::CL_COMPLETE);
            release(self.raw.0);
        }
    }
}
