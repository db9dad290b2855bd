//! HIP's functions by name.

use std::ffi::{CStr, c_char, c_int, c_void};

#[allow(clippy::wildcard_imports, reason = "the types of all signatures")]
use hip_sys::*;
use hip_sys::{hipDriverProcAddressQueryResult as Found, hipError_t};

use crate::error::{entry, store};
use crate::table::hip_api;

/// Defines a function that returns the address of a slot by its name.
macro_rules! by_name {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        fn address(name: &str) -> Option<*mut c_void> {
            let table = hip_api();
            match name {
                $(stringify!($name) => {
                    let slot: Option<unsafe extern "C" fn($($ty),*) $(-> $result)?> = table.$slot;
                    slot.map(|function| function as *mut c_void)
                })*
                _ => None,
            }
        }
    };
}

hip_sys::for_each_function!(by_name);

pub(crate) unsafe extern "C" fn get_proc_address(
    symbol: *const c_char,
    out: *mut *mut c_void,
    version: c_int,
    _flags: u64,
    status: *mut Found,
) -> hipError_t {
    entry("hipGetProcAddress", || {
        if symbol.is_null() || out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a terminated string.
        let name = unsafe { CStr::from_ptr(symbol) }.to_string_lossy();
        // The headers rename these from release 6 on.
        let name = match &*name {
            "hipGetDeviceProperties" if version >= 600 => "hipGetDevicePropertiesR0600",
            "hipChooseDevice" if version >= 600 => "hipChooseDeviceR0600",
            name => name,
        };
        let found = address(name);
        let outcome = match found {
            Some(_) => Found::HIP_GET_PROC_ADDRESS_SUCCESS,
            None => Found::HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        };
        // SAFETY: `out` is not null, `status` null and skipped or not; room for their values by the C caller's promise.
        unsafe {
            if !status.is_null() {
                store(status, outcome)?;
            }
            store(out, found.unwrap_or(std::ptr::null_mut()))?;
        }
        // A name that is not there is an argument that is wrong (hipamd/src/hip_platform.cpp, `hipGetProcAddress`).
        found.map(|_| ()).ok_or(hipError_t::hipErrorInvalidValue)
    })
}
