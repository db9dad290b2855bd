//! The tables of functions, made of the declarations in `functions.rs` and `rtc_functions.rs`.

use crate::types::*;

crate::for_each_function! {
    rocm_loader::function_table,
    /// The functions of HIP: one slot each, empty where the library has none. A slot without a note is in every
    /// supported release.
    pub struct Api;
}

crate::for_each_rtc_function! {
    rocm_loader::function_table,
    /// The functions of HIPRTC: one slot each, empty where the library has none. A slot without a note is in every
    /// supported release.
    pub struct RtcApi;
}
