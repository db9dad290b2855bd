//! Callbacks at the end of an event, and a future made of one.

use std::ffi::c_void;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};

use opencl_sys::{cl_event, cl_int};
use parking_lot::Mutex;

use super::{Event, UserEvent};
use crate::api::slot;
use crate::error::{Error, Result, check};

/// A callback; it receives OpenCL's status, which is negative if the command failed.
type Callback = Box<dyn FnOnce(cl_int) + Send>;

/// Calls the boxed function that `data` points at.
unsafe extern "C" fn call(_event: cl_event, status: cl_int, data: *mut c_void) {
    // SAFETY: `data` is the box that `notify` gave away, and OpenCL calls once.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    callback(status);
}

impl Event {
    /// Calls `callback` on a driver thread with the command's result; a driver may call it at once,
    /// on this thread, if the command has already ended.
    ///
    /// The callback must not wait for the device, must not enqueue a blocking command, and aborts the process if it
    /// panics. The command is submitted to the device, so it ends without a wait.
    ///
    /// # Errors
    ///
    /// An error from `clSetEventCallback` or `clFlush`.
    #[doc(alias = "clSetEventCallback")]
    pub fn on_complete(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let call = self.call();
        self.notify(Box::new(move |status| callback(outcome(call, status))))?;
        self.flush()
    }

    /// Ends `bridge` as this event ends.
    pub(crate) fn end_with(&self, bridge: UserEvent) -> Result<()> {
        let trigger = bridge.into_trigger()?;
        self.notify(Box::new(move |status| trigger.pull(status >= 0)))
    }

    fn notify(&self, callback: Callback) -> Result<()> {
        let set = slot!(self.context().api(), clSetEventCallback)?;
        let data = Box::into_raw(Box::new(callback));
        // SAFETY: the event is alive; the driver keeps it until it has called. `call` takes the box
        // back, which holds what may be sent to another thread.
        let code = unsafe { set(self.raw(), opencl_sys::CL_COMPLETE, Some(call), data.cast()) };
        check(code, || "clSetEventCallback(CL_COMPLETE)".to_owned()).inspect_err(|_| {
            // SAFETY: the driver refused, and does not call.
            drop(unsafe { Box::from_raw(data) });
        })
    }
}

fn outcome(call: &'static str, status: cl_int) -> Result<()> {
    if status < 0 {
        return Err(Error::Command { call, code: status });
    }
    Ok(())
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
            Some(status) => Poll::Ready(outcome(self.event.call(), status)),
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
