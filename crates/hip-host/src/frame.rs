//! What every C entry point does around its body: injected faults, no panic across the C boundary, and the call log.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_sys::{hipError_t, hiprtcResult};
use hsa_sys::hsa_status_t;

use crate::faults::{self, Injected};
use crate::log;

/// A status code of one of the libraries.
pub trait Code: Copy + Debug {
    /// The library's code for success.
    const SUCCESS: Self;
    /// The library's code for an internal failure.
    const FAILURE: Self;

    /// The code with this number.
    fn numbered(number: u32) -> Self;
}

macro_rules! codes {
    ($($code:ident: $success:ident, $failure:ident;)*) => {$(
        impl Code for $code {
            const SUCCESS: Self = Self::$success;
            const FAILURE: Self = Self::$failure;

            fn numbered(number: u32) -> Self {
                Self(number)
            }
        }
    )*};
}

codes! {
    hipError_t: hipSuccess, hipErrorUnknown;
    hiprtcResult: HIPRTC_SUCCESS, HIPRTC_ERROR_INTERNAL_ERROR;
    hsa_status_t: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR;
}

/// Runs the body of `call`, unless a fault is injected.
///
/// What a body shares with later calls lies behind locks that do not poison, so a caught panic leaves nothing unusable.
pub fn run<C: Code>(call: &'static str, body: impl FnOnce() -> Result<(), C>) -> C {
    let code = match faults::injected(call) {
        Some(Injected::Unknown) => C::FAILURE,
        Some(Injected::Code(number)) => C::numbered(number),
        None => match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => C::SUCCESS,
            Ok(Err(code)) => code,
            Err(_) => {
                log::warn(&format!("{call}: internal failure, reported as {:?}", C::FAILURE));
                C::FAILURE
            }
        },
    };
    log::called(call, &code);
    code
}
