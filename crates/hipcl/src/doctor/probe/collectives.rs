//! The library of collectives.

use platform::Platform;

use super::answer::tell;
use super::hip::library;
use crate::doctor::findings::Library;
use crate::error::one_line;

/// Loads the library, which may lie elsewhere than the others, and asks for its version.
pub(super) fn look(platform: Platform) -> Library {
    tell("loading the library of collectives");
    let mut found = library(&platform.collectives_report());
    if let Ok(api) = platform.collectives() {
        tell("asking for its version");
        // SAFETY: the platform loaded the table.
        let version = unsafe { interop::rccl::Library::from_tables(api) }.version();
        let version = version.map_or_else(|error| one_line(&error.to_string()), named);
        found.detail = format!("version {version}, {}", found.detail);
    }
    found
}

/// A number of `ncclGetVersion` as it is written: 22803 is 2.28.3.
fn named(number: i32) -> String {
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}
