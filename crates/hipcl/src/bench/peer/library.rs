//! A library of the machine, if installed.

use std::ffi::CStr;

use libloading::Library;

/// Opens the first of these names that the machine's search path has.
pub(super) fn open(title: &str, names: &[&str]) -> Result<Library, String> {
    names
        .iter()
        // SAFETY: numerical libraries, whose initialisers do no more than any program linked with them has done to it.
        .find_map(|name| unsafe { Library::new(*name) }.ok())
        .ok_or_else(|| {
            format!(
                "{title} is not installed (tried {}); install it to compare",
                names.join(", ")
            )
        })
}

/// The function of this name.
///
/// # Safety
/// `F` is the function's type, and is not called after the library was closed.
pub(super) unsafe fn function<F: Copy>(library: &Library, name: &CStr) -> Result<F, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<F>(name.to_bytes_with_nul()) }
        .map(|symbol| *symbol)
        .map_err(|_| format!("a library without `{}`", name.to_string_lossy()))
}
