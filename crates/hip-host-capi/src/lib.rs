//! The host platform as a C library: `libhip_host.so` has every function that ROCm's headers declare for HIP, HIPRTC,
//! rocBLAS and rocSOLVER, under its own name and with its own signature.
//!
//! | module | what |
//! |---|---|
//! | `hip`, `rtc`, `rocblas`, `rocsolver` | one C function for each slot of a table of `hip-host` and `hip-host-blas` |
//! | `hsa` | the functions of HSA that are built |
//! | `binary` | what `hipcc` makes a program call for its device code |
//! | `unlisted` | rocBLAS' functions with a variable number of arguments: none is built |
//! | `absent` | what a function answers whose slot is empty |
//!
//! A C or C++ program that is compiled with `-D__HIP_PLATFORM_AMD__` links with it instead of `libamdhip64` and related
//! libraries. There is no logic here: each function calls its slot; a function without a slot returns "not supported",
//! never success.

mod absent;
mod binary;
mod hip;
mod hsa;
mod rocblas;
mod rocsolver;
mod rtc;
mod unlisted;

/// Defines the C functions of one table; `TABLE` is the table in the calling module.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $ty),*) $(-> $result)? {
            match TABLE.$slot {
                // SAFETY: the slot has this very signature, and the C caller keeps its contract.
                Some(function) => unsafe { function($($argument),*) },
                None => $crate::absent::Absent::absent(stringify!($name)),
            }
        }
    )*};
}
use export;
