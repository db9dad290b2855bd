//! The completion of one command.

mod callback;
mod end;
mod order;
mod user;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use callback::Completion;
use end::End;
use opencl_sys::cl_event;
pub use user::UserEvent;

use crate::api::slot;
use crate::context::Context;
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::queue::Queue;

/// A command's event. Clones name the same event.
#[derive(Clone)]
pub struct Event(Arc<Inner>);

struct Inner {
    raw: Handle,
    source: Source,
    end: End,
}

/// What ends the event.
enum Source {
    /// A command of a queue. All commands of the queue up to the number were enqueued before it.
    Command { queue: Queue, after: u64 },
    /// The host.
    User(Context),
}

/// When a command was enqueued, submitted, started and ended, on the device's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// `CL_PROFILING_COMMAND_QUEUED`, in nanoseconds.
    pub queued_ns: u64,
    /// `CL_PROFILING_COMMAND_SUBMIT`, in nanoseconds.
    pub submitted_ns: u64,
    /// `CL_PROFILING_COMMAND_START`, in nanoseconds.
    pub started_ns: u64,
    /// `CL_PROFILING_COMMAND_END`, in nanoseconds.
    pub ended_ns: u64,
}

impl Profile {
    /// How long the command ran.
    #[must_use]
    pub fn run_time(&self) -> Duration {
        Duration::from_nanos(self.ended_ns.saturating_sub(self.started_ns))
    }
}

impl Event {
    pub(crate) fn new(raw: cl_event, queue: &Queue, after: u64, call: &'static str) -> Self {
        Self(Arc::new(Inner {
            raw: Handle(raw),
            source: Source::Command {
                queue: queue.clone(),
                after,
            },
            end: End::of_command(call),
        }))
    }

    /// The event `raw` of `context`; the caller gives up its one reference.
    pub(crate) fn of_user(raw: cl_event, context: &Context, end: End) -> Self {
        Self(Arc::new(Inner {
            raw: Handle(raw),
            source: Source::User(context.clone()),
            end,
        }))
    }

    /// Waits until the command, or the [`UserEvent`], has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if it ended with an error; an error from `clWaitForEvents`.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        let wait = slot!(self.context().api(), clWaitForEvents)?;
        let list = [self.raw()];
        // SAFETY: the event is alive.
        let code = unsafe { wait(1, list.as_ptr()) };
        if code == opencl_sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            self.status()?;
        }
        check(code, || "clWaitForEvents(1 event)".to_owned())?;
        self.context().note_wait();
        self.0.end.judge(opencl_sys::CL_COMPLETE)?;
        if let Source::Command { queue, after } = &self.0.source {
            queue.mark_ended(*after);
        }
        Ok(())
    }

    /// Whether the command has ended. It does not wait.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[doc(alias = "clGetEventInfo")]
    pub fn is_complete(&self) -> Result<bool> {
        let complete = self.status()? == opencl_sys::CL_COMPLETE;
        if complete && let Source::Command { queue, after } = &self.0.source {
            queue.mark_ended(*after);
        }
        Ok(complete)
    }

    /// The command's times; the event must come from a [profiling queue](Context::profiling_queue)
    /// and its command must have ended.
    ///
    /// # Errors
    ///
    /// An error from `clGetEventProfilingInfo`, e.g. `CL_PROFILING_INFO_NOT_AVAILABLE`.
    #[doc(alias = "clGetEventProfilingInfo")]
    pub fn profile(&self) -> Result<Profile> {
        let get = slot!(self.context().api(), clGetEventProfilingInfo)?;
        let read = |what| -> Result<u64> {
            let mut time = 0u64;
            // SAFETY: the event is alive and `time` has room for the `cl_ulong` of every query.
            let code = unsafe {
                get(
                    self.raw(),
                    what,
                    size_of::<u64>(),
                    (&raw mut time).cast(),
                    std::ptr::null_mut(),
                )
            };
            check(code, || format!("clGetEventProfilingInfo(0x{what:04X})"))?;
            Ok(time)
        };
        Ok(Profile {
            queued_ns: read(opencl_sys::CL_PROFILING_COMMAND_QUEUED)?,
            submitted_ns: read(opencl_sys::CL_PROFILING_COMMAND_SUBMIT)?,
            started_ns: read(opencl_sys::CL_PROFILING_COMMAND_START)?,
            ended_ns: read(opencl_sys::CL_PROFILING_COMMAND_END)?,
        })
    }

    /// The event's handle, valid for as long as a clone of this value lives. OpenCL does not know of a [`UserEvent`]'s
    /// failure.
    #[must_use]
    pub fn raw(&self) -> cl_event {
        self.0.raw.0
    }

    /// The event's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        match &self.0.source {
            Source::Command { queue, .. } => queue.context(),
            Source::User(context) => context,
        }
    }

    /// Submits the command to the device, so that it ends without a wait.
    pub(crate) fn flush(&self) -> Result<()> {
        self.queue().map_or(Ok(()), Queue::flush)
    }

    /// Keeps the error of a `Drop` for the queue's next `finish`.
    pub(crate) fn defer(&self, error: Error) {
        if let Some(queue) = self.queue() {
            queue.defer(error);
        }
    }

    /// The queue of the event's command; none for a user event.
    pub(crate) fn queue(&self) -> Option<&Queue> {
        match &self.0.source {
            Source::Command { queue, .. } => Some(queue),
            Source::User(_) => None,
        }
    }

    /// The event's status; a failure is an error.
    fn status(&self) -> Result<i32> {
        let get = slot!(self.context().api(), clGetEventInfo)?;
        let mut status = 0i32;
        let what = opencl_sys::CL_EVENT_COMMAND_EXECUTION_STATUS;
        // SAFETY: the event is alive and `status` has room for the answer's `cl_int`.
        let code = unsafe {
            get(
                self.raw(),
                what,
                size_of::<i32>(),
                (&raw mut status).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clGetEventInfo(status)".to_owned())?;
        self.0.end.judge(status)?;
        Ok(status)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("of", &self.0.end.call())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let context = match &self.source {
            Source::Command { queue, .. } => queue.context(),
            Source::User(context) => context,
        };
        if let Some(release) = context.api().clReleaseEvent {
            // SAFETY: this is the one reference that the creation gave.
            unsafe { release(self.raw.0) };
        }
    }
}
