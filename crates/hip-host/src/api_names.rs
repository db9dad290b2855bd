//! HIP function names, by the numbers that tracers use.
//!
//! The numbers change from release to release. These were queried from ROCm 7.2.4, number by
//! number.

use std::ffi::{CString, c_char};
use std::sync::LazyLock;

/// One line for each number, from 0; an empty line where the number has no name.
static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let lines = include_str!("api_names.txt").lines();
    lines.map(|name| CString::new(name).unwrap_or_default()).collect()
});

pub(crate) unsafe extern "C" fn api_name(id: u32) -> *const c_char {
    let name = NAMES.get(id as usize).filter(|name| !name.is_empty());
    name.map_or(c"unknown", CString::as_c_str).as_ptr()
}
