//! One way to call a table slot, so every failure reads the same.

use std::ffi::CString;

use crate::{Error, Result};

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

/// A text for a C function.
pub(crate) fn c_text(text: &str, what: &'static str) -> Result<CString> {
    CString::new(text).map_err(|error| Error::NulByte {
        what,
        position: error.nul_position(),
    })
}

pub(crate) use call;
pub(crate) use code;
