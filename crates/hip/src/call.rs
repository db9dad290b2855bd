//! One way to call a table slot, so that every failure reads the same.

/// `call!(runtime, hipMalloc(&mut pointer, bytes), "hipMalloc({bytes} bytes)")` is a `Result<()>`. The text is only
/// formatted on failure. Expands to an unsafe call: wrap it in `unsafe` where the obligations are justified.
macro_rules! call {
    ($runtime:expr, $function:ident($($argument:expr),* $(,)?), $($text:tt)+) => {
        match $crate::call::code!($runtime, $function($($argument),*)) {
            Ok(hip_sys::hipError_t::hipSuccess) => Ok(()),
            Ok(code) => Err($runtime.failure(code, format!($($text)+))),
            Err(missing) => Err(missing),
        }
    };
}

/// `code!(runtime, hipStreamQuery(stream))` is a `Result<hipError_t>`, for calls whose codes are not all failures.
macro_rules! code {
    ($runtime:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $runtime.api().$function {
            Some(function) => Ok(function($($argument),*)),
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

pub(crate) use {call, code, rtc_call};
