//! The table of functions, made of the declarations in `functions.rs`.

use hip_sys::*;

use crate::types::*;

crate::for_each_function! {
    rocm_loader::function_table,
    /// The functions of RCCL: one slot each, empty where the library has none. A slot without a note is in every
    /// supported release.
    pub struct Api;
}
