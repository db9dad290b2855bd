//! One way to call a slot of the table, so that every failure reads the same.

/// `call!(runtime, hipMalloc(&mut pointer, bytes), "hipMalloc({bytes} bytes)")` is a `Result<()>`. The text is only
/// formatted on failure. Expands to an unsafe call: wrap it in `unsafe` where the duties are argued.
macro_rules! call {
    ($runtime:expr, $function:ident($($argument:expr),* $(,)?), $($text:tt)+) => {
        match $runtime.api().$function {
            Some(function) => match function($($argument),*) {
                code if code == hip_sys::hipError_t::hipSuccess => Ok(()),
                code => Err($runtime.failure(code, format!($($text)+))),
            },
            None => Err($crate::Error::MissingSymbol { symbol: stringify!($function) }),
        }
    };
}

/// The same for the compiler's table.
macro_rules! rtc_call {
    ($table:expr, $function:ident($($argument:expr),* $(,)?), $($text:tt)+) => {
        match $table.$function {
            Some(function) => match function($($argument),*) {
                code if code == hip_sys::hiprtcResult::HIPRTC_SUCCESS => Ok(()),
                code => Err($crate::rtc::failure(code, format!($($text)+))),
            },
            None => Err($crate::Error::MissingSymbol { symbol: stringify!($function) }),
        }
    };
}

pub(crate) use {call, rtc_call};
