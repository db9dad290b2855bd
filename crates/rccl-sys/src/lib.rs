//! Raw bindings of RCCL, and of NCCL, whose API it is: C types under their own names, and the functions as a table of
//! optional slots.
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
//! HIP's streams are those of `hip-sys`. The table serves ROCm 5.4 to 7.2: a slot's note says which releases have it.
//!
//! On NVIDIA's GPUs the same calls are NCCL's: [`Api::load_nccl`] fills the table from `libnccl.so.2`, and leaves the
//! slots of what only RCCL has empty. A stream is passed on as it is, so it has to be one of CUDA.
//!
//! The operations of `ncclRedOp_t` are numbers, and a program may make more of them: an unknown one is no error here.
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | `load`, `load_from`, `load_beside`, `load_nccl`; without it the crate needs `core` only |
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
#[cfg(feature = "load")]
pub use library::NCCL;
#[doc(hidden)]
pub use rocm_loader::model_functions;
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;
