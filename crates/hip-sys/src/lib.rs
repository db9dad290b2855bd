//! Raw bindings of HIP and HIPRTC: C types under their own names, and the functions as tables of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `api.rs`, `rtc_api.rs` | [`Api`] and [`RtcApi`], one slot for each function (generated) |
//! | `functions.rs`, `rtc_functions.rs` | the same functions as macros that list their signatures (generated) |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//! | `constants.rs` | the few macros that the generator cannot express |
//!
//! Nothing is linked: [`Api::load`] opens the library at run time, [`Api::from_symbols`] takes the functions from anywhere.
//! A C enum is a transparent newtype with associated constants, so a value that a newer release adds is never undefined
//! behaviour; it prints with its C name. No wrapper checks an argument here; that is the work of the crate `hip`.
//!
//! The signatures are those of ROCm 6.4. The API only ever grew, but these mean something else in another release:
//!
//! | what | where | instead |
//! |---|---|---|
//! | `hipDeviceProp_tR0600`, the `…R0600` functions | absent before 6.0 | [`Api::hipDeviceGetAttribute`], [`Api::hipDeviceGetName`], [`Api::hipDeviceGetPCIBusId`] |
//! | [`hipMemoryType`] | 5.x: host 0, device 1, array 2, unified 3, managed 4 | ask [`Api::hipRuntimeGetVersion`] first |
//! | [`Api::hipPointerGetAttributes`] of null | from 7.0 a success | |
//! | [`Api::hipDrvGraphAddMemsetNode`], [`Api::hipDrvGraphExecMemsetNodeSetParams`], [`Api::hipDeviceGetTexture1DLinearMaxWidth`] | from 7.0 other arguments | |

#[rustfmt::skip]
mod api;
mod constants;
#[rustfmt::skip]
mod functions;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
#[rustfmt::skip]
mod layout;
#[rustfmt::skip]
mod names;
#[rustfmt::skip]
mod rtc_api;
#[rustfmt::skip]
mod rtc_functions;
#[rustfmt::skip]
mod types;

pub use api::Api;
pub use constants::*;
pub use rocm_loader::{LoadError, Loaded};
pub use rtc_api::RtcApi;
pub use types::*;

use rocm_loader::Search;

rocm_loader::function_table! {
    Api,
    Search {
        library: "libamdhip64",
        env: "HIPCL_HIP_LIBRARY",
        sonames: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"],
        key_symbol: c"hipGetDeviceCount",
        fallback: None,
    }
}

rocm_loader::function_table! {
    RtcApi,
    Search {
        library: "libhiprtc",
        env: "HIPCL_HIPRTC_LIBRARY",
        sonames: &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"],
        key_symbol: c"hiprtcCompileProgram",
        // Releases before 7.0 have HIPRTC inside HIP's own library too.
        fallback: Some(&Search { key_symbol: c"hiprtcCompileProgram", ..Api::SEARCH }),
    }
}
