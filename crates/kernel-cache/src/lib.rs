//! Compiled kernels on disk, for the crates that compile kernels.
//!
//! | file | what |
//! |---|---|
//! | `key.rs` | [`KeyBuilder`]: everything that a compilation depends on, as one digest |
//! | `store.rs` | [`Store`]: entries in a folder, each complete and stored under its key, or missing |
//! | `folder.rs` | the folder, which only its user can write |
//! | `scan.rs` | [`Scan`]: the files that a text includes, or an error if that is unknown |
//! | `options.rs` | [`Scan::options`]: whether options may name files; [`loading`]: whether they load code into the compiler |
//!
//! # What this layer does
//!
//! * It accepts an entry only if its file is a regular file, if file and folder belong to the process's user, and if no
//!   other user can write to them. An entry is code that will run.
//! * It finds the includes of a source text without the compiler. Anything that it does not understand is an error, and
//!   its caller then caches nothing.
//!
//! # What it does not do
//!
//! * It does not protect against its own user: an entry holds no secret, and its digest tells damage, not the writer. So
//!   [`Store::write`] is `unsafe`.
//! * It deletes nothing.

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod folder;
mod key;
mod options;
mod scan;
mod store;

use std::path::PathBuf;

pub use key::{Key, KeyBuilder};
pub use options::{loading, words};
pub use scan::{Include, Includes, NotUnderstood, Scan};
pub use store::{Store, Trouble};

/// The environment variable that names the folder of the caches.
pub const FOLDER_VARIABLE: &str = "HIPCL_CACHE_DIR";

/// Environment variables from which compilers take include folders, options and their own parts.
pub const INCLUDE_VARIABLES: [&str; 6] = [
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CCC_OVERRIDE_OPTIONS",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
];

/// The folder with this name under the one that `HIPCL_CACHE_DIR` names, else under the user's cache
/// folder; `None` if there is neither.
#[must_use]
pub fn folder(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty());
    let base = match named {
        Some(folder) => PathBuf::from(folder),
        None => directories::BaseDirs::new()?.cache_dir().join("hipcl"),
    };
    Some(base.join(name))
}

/// Checks that none of these variables is set, since their effect is unknown.
///
/// # Errors
///
/// The first one that is set.
pub fn unset(variables: &[&str]) -> Result<(), NotUnderstood> {
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match variables.iter().find(is_set) {
        Some(name) => Err(NotUnderstood::new(format!("the variable {name} may include files"))),
        None => Ok(()),
    }
}
