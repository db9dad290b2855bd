use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_sys::{hipError_t, hipStream_t};

use super::Stream;
use crate::call::call;
use crate::{Error, Result, Runtime};

/// What the C function receives: the work, and where its panic is reported.
struct Work<F> {
    runtime: Runtime,
    function: F,
}

impl Stream {
    /// Calls `function` on a HIP thread once the work queued so far is done; work queued later waits for it. The host
    /// does not wait.
    ///
    /// `function` must not use HIP, dropping what it captured included: HIP would wait for its own thread. Send what is
    /// done to another thread instead. A panic is caught and deferred ([`Runtime::take_deferred_errors`]). If the
    /// device is lost, `function` may never be called, and what it captured is then leaked.
    ///
    /// # Errors
    ///
    /// HIP refused it; `function` is dropped.
    #[doc(alias = "hipLaunchHostFunc")]
    pub fn host_function<F>(&self, function: F) -> Result<()>
    where
        F: FnOnce() + Send + 'static,
    {
        self.not_capturing("a host function")?;
        self.device().make_current()?;
        self.give_away(function, |work| {
            // SAFETY: the stream is alive; `run` gets the box it expects, once.
            unsafe {
                call!(
                    self.device().runtime(),
                    hipLaunchHostFunc(self.raw(), Some(run::<F>), work),
                    "hipLaunchHostFunc({:?})",
                    self.raw()
                )
            }
        })
    }

    /// As [`Stream::host_function`], and passes `function` the result of the work before it.
    ///
    /// An error that it receives is not taken from the stream: the next [`Stream::synchronize`] returns it again. ROCm
    /// always reports success (hipamd/src/hip_stream.cpp, `StreamCallback`), so `Ok` only says that the work has ended.
    ///
    /// # Errors
    ///
    /// HIP refused it; `function` is dropped.
    #[doc(alias = "hipStreamAddCallback")]
    pub fn on_complete<F>(&self, function: F) -> Result<()>
    where
        F: FnOnce(Result<()>) + Send + 'static,
    {
        self.not_capturing("a callback")?;
        self.device().make_current()?;
        self.give_away(function, |work| {
            // SAFETY: the stream is alive; `tell` gets the box it expects, once; there are no flags.
            unsafe {
                call!(
                    self.device().runtime(),
                    hipStreamAddCallback(self.raw(), Some(tell::<F>), work, 0),
                    "hipStreamAddCallback({:?})",
                    self.raw()
                )
            }
        })
    }

    /// Boxes the work for `queue`, which passes it to HIP or fails.
    fn give_away<F>(&self, function: F, queue: impl FnOnce(*mut c_void) -> Result<()>) -> Result<()> {
        let work = Box::into_raw(Box::new(Work {
            runtime: self.device().runtime().clone(),
            function,
        }));
        let queued = queue(work.cast());
        if queued.is_err() {
            // SAFETY: HIP did not take it, so the box is still ours.
            drop(unsafe { Box::from_raw(work) });
        }
        queued
    }
}

unsafe extern "C" fn run<F: FnOnce() + Send>(work: *mut c_void) {
    // SAFETY: `host_function` gave this box away for this one call.
    let work = *unsafe { Box::from_raw(work.cast::<Work<F>>()) };
    guarded(work.runtime, work.function);
}

unsafe extern "C" fn tell<F: FnOnce(Result<()>) + Send>(stream: hipStream_t, status: hipError_t, work: *mut c_void) {
    // SAFETY: `on_complete` gave this box away for this one call.
    let Work { runtime, function } = *unsafe { Box::from_raw(work.cast::<Work<F>>()) };
    let outcome = match status {
        hipError_t::hipSuccess => Ok(()),
        code => Err(Runtime::failure_told(code, format!("work of stream {stream:?}"))),
    };
    guarded(runtime, move || function(outcome));
}

fn guarded(runtime: Runtime, function: impl FnOnce()) {
    // Nothing of the closure is seen after a panic: it was consumed.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(function)) {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        runtime.defer(Error::HostFunction {
            message: message.unwrap_or_else(|| "no message".to_owned()),
        });
        // Its destructor may panic again, and C cannot be unwound.
        std::mem::forget(panic);
    }
}
