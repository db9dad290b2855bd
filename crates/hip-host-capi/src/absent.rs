//! What a function answers that is not built: its API's word for "not supported", never a success.

use std::ffi::{c_char, c_int};

use hip_sys::{hipChannelFormatDesc, hipError_t, hiprtcResult};
use rocblas_sys::{rocblas_pointer_mode, rocblas_status};

/// The answer of a function without implementation.
pub(crate) trait Absent {
    /// Says on standard error what was called, if `HIP_HOST_LOG` asks for it, and gives the answer.
    fn absent(call: &'static str) -> Self;
}

impl Absent for hipError_t {
    fn absent(call: &'static str) -> Self {
        model::absent::hip(call)
    }
}

impl Absent for hiprtcResult {
    fn absent(call: &'static str) -> Self {
        model::absent::report(call);
        // HIPRTC has no word for it.
        Self::HIPRTC_ERROR_INTERNAL_ERROR
    }
}

impl Absent for rocblas_status {
    fn absent(call: &'static str) -> Self {
        model::absent::report(call);
        Self::rocblas_status_not_implemented
    }
}

/// Pointers: none.
impl Absent for *const c_char {
    fn absent(call: &'static str) -> Self {
        model::absent::report(call);
        std::ptr::null()
    }
}

/// Questions whether something worked: it did not.
impl Absent for bool {
    fn absent(call: &'static str) -> Self {
        model::absent::report(call);
        false
    }
}

/// Answers without a value that means failure: the process ends, since any value would read as a success.
macro_rules! unanswerable {
    ($($ty:ty)*) => {$(
        impl Absent for $ty {
            fn absent(call: &'static str) -> Self {
                eprintln!("hip-host: {call} is not built on the host platform and can report no error");
                std::process::abort()
            }
        }
    )*};
}

unanswerable!(() c_int hipChannelFormatDesc rocblas_pointer_mode);
