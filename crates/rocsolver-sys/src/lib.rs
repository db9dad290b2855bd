//! Raw bindings of rocSOLVER: C types under their own names, and the functions as a table of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `api.rs` | [`Api`], one slot for each function (generated) |
//! | `library.rs` | where the library is found; feature `load`, on by default |
//!
//! The table serves ROCm 5.5 to 7.x; a slot's note says which releases have it.
//!
//! Handles, status values and complex numbers are those of `rocblas-sys`: rocSOLVER works on a rocBLAS handle.
//! Load rocBLAS first, and both from one release ([`Api::load_beside`]).

#![no_std]

#[rustfmt::skip]
mod api;
#[cfg(feature = "load")]
mod library;
#[rustfmt::skip]
mod names;
#[rustfmt::skip]
mod types;

pub use api::Api;
#[cfg(feature = "load")]
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;

rocm_loader::function_table!(Api);
