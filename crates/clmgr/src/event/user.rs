//! Events that the host ends.

use std::fmt;

use crate::api::{Api, slot};
use crate::context::Context;
use crate::error::{Result, check};
use crate::event::Event;
use crate::handle::Handle;

/// An event that the host ends, for commands to wait for.
///
/// If dropped before that, it fails, so nothing waits for it forever.
pub struct UserEvent {
    event: Event,
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
        Ok(Self {
            event: Event::of_user(raw, context),
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
        self.set(opencl_sys::CL_COMPLETE)
    }

    /// Ends the event with an error. The effect on waiting commands differs: PoCL and Mesa fail
    /// them, Intel's CPU runtime runs them.
    ///
    /// # Errors
    ///
    /// An error from `clSetUserEventStatus`.
    pub fn fail(mut self) -> Result<()> {
        self.set(FAILED)
    }

    fn set(&mut self, status: i32) -> Result<()> {
        self.ended = true;
        let set = slot!(self.event.context().api(), clSetUserEventStatus)?;
        // SAFETY: the event is a live user event whose status was not set before.
        check(unsafe { set(self.event.raw(), status) }, || {
            format!("clSetUserEventStatus({status})")
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
            api,
        })
    }
}

/// The status of a user event that the host could not end well.
const FAILED: i32 = opencl_sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

impl fmt::Debug for UserEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserEvent").finish_non_exhaustive()
    }
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        if !self.ended {
            // Its one error is that the event has ended already.
            let _ = self.set(FAILED);
        }
    }
}

/// A user event as a callback keeps it: a reference to the event alone. The last reference to a
/// context or a queue must not be released inside a driver's callback.
pub(super) struct Trigger {
    raw: Handle,
    api: Api,
}

impl Trigger {
    /// Ends the event, well or not.
    pub fn pull(self, well: bool) {
        self.set(if well { opencl_sys::CL_COMPLETE } else { FAILED });
        std::mem::forget(self);
    }

    fn set(&self, status: i32) {
        let (Some(set), Some(release)) = (self.api.clSetUserEventStatus, self.api.clReleaseEvent) else {
            return;
        };
        // SAFETY: the event is a live user event whose status was not set before, and this
        // reference is released once.
        unsafe {
            set(self.raw.0, status);
            release(self.raw.0);
        }
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        self.set(FAILED);
    }
}
