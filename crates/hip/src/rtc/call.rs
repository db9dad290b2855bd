//! One way to call the compiler's table.

use hip_sys::hiprtcResult;

use crate::Error;

/// `rtc_call!(table, hiprtcDestroyProgram(&mut raw), "hiprtcDestroyProgram()")` is to the compiler's table what
/// [`call!`](crate::call::call) is to HIP's.
macro_rules! rtc_call {
    ($table:expr, $function:ident($($argument:expr),* $(,)?), $($text:tt)+) => {
        match $table.$function {
            Some(function) => match function($($argument),*) {
                code if code == hip_sys::hiprtcResult::HIPRTC_SUCCESS => Ok(()),
                code => Err($crate::rtc::call::failure(code, format!($($text)+))),
            },
            None => Err($crate::Error::MissingSymbol { symbol: stringify!($function) }),
        }
    };
}

#[cold]
pub(super) fn failure(code: hiprtcResult, call: String) -> Error {
    let name = code.name().unwrap_or("HIPRTC_ERROR of a newer release");
    Error::Call {
        call,
        name,
        code: i64::from(code.0),
        remedy: String::new(),
    }
}

pub(super) use rtc_call;
