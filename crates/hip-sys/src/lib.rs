//! Raw bindings of HIP and HIPRTC: C types under their own names, and the functions as tables of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `api.rs`, `rtc_api.rs` | [`Api`] and [`RtcApi`], one slot for each function (generated) |
//! | `library.rs` | where the library is found; features `load` and `linked` |
//! | `functions.rs`, `rtc_functions.rs` | the same functions as macros that list their signatures (generated) |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//! | `constants.rs` | the few macros that the generator cannot express |
//!
//! Nothing is linked unless the feature `linked` asks for it: [`Api::load`] opens the library at run time, [`Api::from_symbols`] takes the functions from anywhere.
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
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | `load`, `load_from`, `load_beside`; without it the crate needs `core` only |
//! | `linked` | no | `linked`: the program is linked with the library, which has to be there when it is built and when it starts |

#![no_std]

#[rustfmt::skip]
mod api;
mod constants;
#[rustfmt::skip]
mod functions;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
#[rustfmt::skip]
mod layout;
#[cfg(feature = "load")]
mod library;
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
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use rtc_api::RtcApi;
pub use types::*;

rocm_loader::function_table!(Api);
rocm_loader::function_table!(RtcApi);
