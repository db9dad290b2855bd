//! HIP's types, values and tables in a program without an operating system.

#![no_std]

use core::ffi::{CStr, c_void};

use hip_sys::{Api, hipError_t, hipExtent};

/// The bytes of a box whose width is in bytes.
pub const fn bytes(extent: &hipExtent) -> usize {
    extent.width * extent.height * extent.depth
}

/// What to tell a user.
pub fn explain(status: hipError_t) -> &'static str {
    status.name().unwrap_or("a code that this release does not know")
}

/// A table from functions that a firmware or a test provides.
///
/// # Safety
///
/// As [`Api::from_symbols`].
pub unsafe fn table(find: impl FnMut(&CStr) -> Option<*mut c_void>) -> Api {
    // SAFETY: the caller's promise is the callee's demand.
    unsafe { Api::from_symbols(find) }
}
