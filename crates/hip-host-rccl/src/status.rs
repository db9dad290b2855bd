//! Codes, and the text behind a failure.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;

use hip_host::library;
use hip_sys::hipError_t;
use rccl_sys::ncclResult_t;

/// Why a call, or a communicator, failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: ncclResult_t,
    pub(crate) text: CString,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: ncclResult_t, text: impl Into<String>) -> Self {
        // No text here has a null byte.
        let text = CString::new(text.into()).unwrap_or_default();
        Self { code, text }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(ncclResult_t::ncclInvalidArgument, text)
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(ncclResult_t::ncclInvalidUsage, text)
    }

    pub(crate) fn system(text: impl Into<String>) -> Self {
        Self::new(ncclResult_t::ncclSystemError, text)
    }

    pub(crate) fn remote(text: impl Into<String>) -> Self {
        Self::new(ncclResult_t::ncclRemoteError, text)
    }
}

/// HIP's refusal as RCCL's.
pub(crate) fn from_hip(call: &str, error: hipError_t) -> Outcome {
    match error {
        hipError_t::hipSuccess => Ok(()),
        error => Err(Failure::new(
            ncclResult_t::ncclUnhandledCudaError,
            format!("{call}: {error:?}"),
        )),
    }
}

/// As [`entry`], for a body that says whether its work goes on after the call.
pub(crate) fn entry_of_work(name: &'static str, body: impl FnOnce() -> Outcome<bool>) -> ncclResult_t {
    let mut goes_on = false;
    let code = entry(name, || {
        goes_on = body()?;
        Ok(())
    });
    match code {
        ncclResult_t::ncclSuccess if goes_on => ncclResult_t::ncclInProgress,
        code => code,
    }
}

thread_local! {
    /// The text of the thread's last failed call.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of the entry point `name`, and keeps the text of its failure.
pub(crate) fn entry(name: &'static str, body: impl FnOnce() -> Outcome) -> ncclResult_t {
    let body = || {
        body().map_err(|failure| {
            let code = failure.code;
            LAST.set(failure.text);
            Code(code)
        })
    };
    library::entry(name, body).0
}

/// The text of the thread's last failed call. It stays until the thread's next failure.
pub(crate) fn last_text() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// A code as the model's frame sees it.
#[derive(Clone, Copy)]
struct Code(ncclResult_t);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl library::Code for Code {
    const SUCCESS: Self = Self(ncclResult_t::ncclSuccess);
    const FAILURE: Self = Self(ncclResult_t::ncclInternalError);

    fn numbered(number: u32) -> Self {
        Self(ncclResult_t(number))
    }
}

pub(crate) unsafe extern "C" fn error_string(result: ncclResult_t) -> *const c_char {
    let text: &CStr = match result {
        ncclResult_t::ncclSuccess => c"no error",
        ncclResult_t::ncclUnhandledCudaError => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        ncclResult_t::ncclSystemError => c"unhandled system error (run with NCCL_DEBUG=INFO for details)",
        ncclResult_t::ncclInternalError => c"internal error - please report this issue to the NCCL developers",
        ncclResult_t::ncclInvalidArgument => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
        ncclResult_t::ncclInvalidUsage => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        ncclResult_t::ncclRemoteError => c"remote process exited or there was a network error",
        ncclResult_t::ncclInProgress => c"NCCL operation in progress",
        _ => c"unknown result code",
    };
    text.as_ptr()
}
