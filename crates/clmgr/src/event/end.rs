//! How an event ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use opencl_sys::cl_int;

use crate::error::{Error, Result, still_running};

/// Judges the status that a driver reports for an event. Callbacks keep it: it holds nothing of the driver's.
#[derive(Clone)]
pub(crate) struct End {
    call: &'static str,
    failed: Option<Failed>,
}

/// That the host failed a user event: for OpenCL each of them ends as complete.
#[derive(Clone, Default)]
pub(super) struct Failed(Arc<AtomicBool>);

/// The status of a user event that failed.
const FAILED: cl_int = opencl_sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

impl Failed {
    /// To be called before the event ends.
    pub fn note(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl End {
    /// Of a command that `call` enqueued.
    pub fn of_command(call: &'static str) -> Self {
        Self { call, failed: None }
    }

    /// Of an event that the host ends.
    pub(super) fn of_user(failed: &Failed) -> Self {
        Self {
            call: "clCreateUserEvent",
            failed: Some(failed.clone()),
        }
    }

    /// What made the event.
    pub fn call(&self) -> &'static str {
        self.call
    }

    /// Whether an event with this status has not failed. A driver that ends with the process may report success for
    /// commands that never ran.
    pub fn judge(&self, status: cl_int) -> Result<()> {
        still_running()?;
        let has_failed = |failed: &Failed| failed.0.load(Ordering::Acquire);
        let code = match status {
            opencl_sys::CL_COMPLETE if self.failed.as_ref().is_some_and(has_failed) => FAILED,
            _ => status,
        };
        match code {
            ..0 => Err(Error::Command { call: self.call, code }),
            _ => Ok(()),
        }
    }
}
