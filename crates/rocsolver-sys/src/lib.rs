//! Raw bindings of rocSOLVER: C types under their own names, and the functions as a table of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `api.rs` | [`Api`], one slot for each function (generated) |
//! | `functions.rs` | the same functions as a macro that lists their signatures (generated) |
//!
//! Handles, status values and complex numbers are those of `rocblas-sys`: rocSOLVER works on a rocBLAS handle.
//! Load rocBLAS first, and both from one release ([`Api::load_beside`]).

#[rustfmt::skip]
mod api;
#[rustfmt::skip]
mod functions;
#[rustfmt::skip]
mod names;
#[rustfmt::skip]
mod types;

pub use api::Api;
pub use rocm_loader::{LoadError, Loaded};
pub use types::*;

use rocm_loader::Search;

rocm_loader::function_table! {
    Api,
    Search {
        library: "librocsolver",
        env: "HIPCL_ROCSOLVER_LIBRARY",
        sonames: &["librocsolver.so.0"],
        key_symbol: c"rocsolver_cpotrf",
        fallback: None,
    }
}
