//! Raw bindings of the HSA runtime and its AMD extensions: C types under their own names, and the functions as a table
//! of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `functions.rs` | the functions, each declared once in a macro that lists them (generated) |
//! | `api.rs` | [`Api`], one slot for each function |
//! | `library.rs` | where the library is found; features `load` and `linked` |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//!
//! The table serves ROCm 5.7 to 10.1; a slot's note says which releases have it (the HSA of 10.0 was not read, nor that
//! of 5.7 itself: what came after 5.2 and is in 6.1 may or may not be there).
//!
//! The project needs a few of them: `hsa_amd_pointer_info` tells who owns an address and where the memory lies.
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | `load`, `load_from`, `load_beside`; without it the crate needs `core` only |
//! | `linked` | no | `linked`: the program is linked with the library, which has to be there when it is built and when it starts |

#![no_std]

mod api;
mod functions;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
#[rustfmt::skip]
mod layout;
#[cfg(feature = "load")]
mod library;
#[rustfmt::skip]
mod names;
#[rustfmt::skip]
mod types;

pub use api::Api;
#[doc(hidden)]
pub use rocm_loader::model_functions;
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;
