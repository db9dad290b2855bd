//! Callbacks at the end of an event, and a future made of one.

use std::ffi::c_void;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};

use opencl_sys::{cl_event, cl_int};
use parking_lot::Mutex;

use super::{Event, UserEvent};
use crate::api::slot;
use crate::error::{Result, check_taken};

/// A callback; it receives OpenCL's status, which is negative if the command failed.
type Callback = Box<dyn FnOnce(cl_int) + Send>;

/// Calls the boxed function that `data` points at.
unsafe extern "C" fn call(_event: cl_event, status: cl_int, data: *mut c_void) {
    // SAFETY: `data` is the box that `notify` gave away, and OpenCL calls once.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    // Not left to the end of this function: the search for a handler would go through the driver's frames first, and
    // not every driver's can be searched.
    if std::panic::catch_unwind(AssertUnwindSafe(|| callback(status))).is_err() {
        std::process::abort();
    }
}

impl Event {
    /// Calls `callback` on a driver thread with the event's result, as of [`wait`](Self::wait); a driver may call it at
    /// once, on this thread, if the command has already ended.
    ///
    /// The callback must not wait for the device, must not enqueue a blocking command, must not own or drop a buffer,
    /// whose drop may wait, and aborts the process if it panics. The command is submitted to the device, so it ends
    /// without a wait.
    ///
    /// # Errors
    ///
    /// An error from `clSetEventCallback` or `clFlush`.
    #[doc(alias = "clSetEventCallback")]
    pub fn on_complete(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let end = self.0.end.clone();
        self.notify(Box::new(move |status| callback(end.judge(status))))?;
        self.flush()
    }

    /// Ends `bridge` as this event ends.
    pub(crate) fn end_with(&self, bridge: UserEvent) -> Result<()> {
        let trigger = bridge.into_trigger()?;
        let end = self.0.end.clone();
        self.notify(Box::new(move |status| trigger.pull(end.judge(status).is_ok())))
    }

    fn notify(&self, callback: Callback) -> Result<()> {
        let set = slot!(self.context().api(), clSetEventCallback)?;
        let data = Box::into_raw(Box::new(callback));
        // SAFETY: the event is alive; the driver keeps it until it has called. `call` takes the box
        // back, which holds what may be sent to another thread.
        let code = unsafe { set(self.raw(), opencl_sys::CL_COMPLETE, Some(call), data.cast()) };
        check_taken(code, || "clSetEventCallback(CL_COMPLETE)".to_owned()).inspect_err(|_| {
            // SAFETY: the driver refused, and does not call.
            drop(unsafe { Box::from_raw(data) });
        })
    }
}

/// The end of an event as a future: `event.await`.
///
/// It blocks no executor thread: the driver's callback wakes the task.
pub struct Completion {
    event: Event,
    shared: Option<Arc<Mutex<Shared>>>,
}

#[derive(Default)]
struct Shared {
    status: Option<cl_int>,
    waker: Option<Waker>,
}

impl IntoFuture for Event {
    type Output = Result<()>;
    type IntoFuture = Completion;

    fn into_future(self) -> Completion {
        Completion {
            event: self,
            shared: None,
        }
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Result<()>> {
        if self.shared.is_none() {
            let shared = Arc::new(Mutex::new(Shared::default()));
            let theirs = shared.clone();
            self.event.notify(Box::new(move |status| {
                let mut shared = theirs.lock();
                shared.status = Some(status);
                let waker = shared.waker.take();
                drop(shared);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }))?;
            self.shared = Some(shared);
            self.event.flush()?;
        }
        let Some(shared) = &self.shared else {
            return Poll::Pending;
        };
        let mut shared = shared.lock();
        match shared.status {
            Some(status) => Poll::Ready(self.event.0.end.judge(status)),
            None => {
                shared.waker = Some(task.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}
