//! The result of functions that are declared but not built, for code that must export them nevertheless.

use hip_sys::hipError_t;

use crate::error::entry;
use crate::log;

/// Returns `hipErrorNotSupported` for the HIP function `call` and makes it the thread's last error.
pub fn hip(call: &'static str) -> hipError_t {
    entry(call, || {
        report(call);
        Err(hipError_t::hipErrorNotSupported)
    })
}

/// Reports on standard error that `call` is not built, if `HIP_HOST_LOG` requests it.
pub fn report(call: &'static str) {
    log::refused(call, format_args!("not built on the host platform"));
}
