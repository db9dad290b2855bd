//! HIP's functions.
#![allow(non_snake_case, reason = "C names")]

use hip_sys::*;

use crate::export;

static TABLE: Api = model::hip_api();

hip_sys::for_each_function!(export);

/// Defines C functions under a second name.
macro_rules! also {
    ($(fn $name:ident($($argument:ident: $ty:ty),*) = $slot:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $ty),*) -> hipError_t {
            // SAFETY: the same function, and the C caller keeps its contract.
            unsafe { $slot($($argument),*) }
        }
    )*};
}

// The headers give these names to the newer forms, by macros. A program that looks the plain name up itself gets the
// older form, as from ROCm's library.
also! {
    fn hipGetDeviceProperties(prop: *mut hipDeviceProp_tR0000, device: std::ffi::c_int) = hipGetDevicePropertiesR0000;
    fn hipChooseDevice(device: *mut std::ffi::c_int, prop: *const hipDeviceProp_tR0000) = hipChooseDeviceR0000;
}
