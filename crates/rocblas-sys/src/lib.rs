//! Raw bindings of rocBLAS: C types under their own names, and the functions as a table of optional slots.
//!
//! | file | what |
//! |---|---|
//! | `types.rs` | types, enums and constants (generated) |
//! | `names.rs` | `name()` of the enums (generated) |
//! | `api.rs` | [`Api`], one slot for each function (generated) |
//! | `functions.rs` | the same functions as a macro that lists their signatures (generated) |
//! | `layout.rs` | sizes and offsets as the C compiler sees them (generated, tests only) |
//!
//! HIP's types (streams, events) are those of `hip-sys`. The `_64` forms appeared with ROCm 6.3; older libraries leave
//! their slots empty.

#[rustfmt::skip]
mod api;
#[rustfmt::skip]
mod functions;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
#[rustfmt::skip]
mod layout;
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
        library: "librocblas",
        env: "HIPCL_ROCBLAS_LIBRARY",
        sonames: &["librocblas.so.5", "librocblas.so.4", "librocblas.so.3"],
        key_symbol: c"rocblas_create_handle",
        fallback: None,
    }
}
