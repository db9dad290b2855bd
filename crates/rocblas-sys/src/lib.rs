//! Raw bindings of rocBLAS: C types under their own names, and the functions as a table of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `functions.rs` | the functions, each declared once in a macro that lists them (generated) |
//! | `api.rs` | [`Api`], one slot for each function |
//! | `family.rs` | for crates that define the functions: a family of them from one declaration; feature `families` |
//! | `library.rs` | where the library is found; features `load` and `linked` |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//!
//! HIP's types (streams, events) are those of `hip-sys`. The table serves ROCm 5.5 to 10.1; a slot's note says which
//! releases have it, and what came after 7.2 has none. The `_64` forms came between 6.0 and 6.3.
//!
//! `trmm` wrote its result over `B` up to ROCm 5 and has an output matrix since 6.0, under the same symbols. The old
//! way's slots end in `_until_5`; a library fills only those of its own way.
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | `load`, `load_from`, `load_beside`; without it the crate needs `core` only |
//! | `families` | no | `family!`, for crates that define the functions |
//! | `linked` | no | `linked`: the program is linked with the library, which has to be there when it is built and when it starts |

#![no_std]

mod api;
#[cfg(feature = "families")]
mod family;
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
#[cfg(feature = "families")]
#[doc(hidden)]
pub use pastey::paste;
#[doc(hidden)]
pub use rocm_loader::model_functions;
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;
