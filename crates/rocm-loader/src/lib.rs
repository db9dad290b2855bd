//! Finds and opens the shared libraries of a ROCm installation, and turns them into tables of optional functions.
//!
//! | file | what |
//! |---|---|
//! | `search.rs` | where a library is looked for, in which order |
//! | `loaded.rs` | an open library; it is never closed |
//! | `elf.rs` | why a file can't be a library of this machine, told before the dynamic linker is asked |
//! | `release.rs` | ROCm's release numbers, and the oldest one that is supported |
//! | `error.rs` | what can go wrong, one line each |
//! | `table.rs` | [`function_table!`]: the loading half of every `-sys` crate's `Api` |
//!
//! Nothing here knows a function of ROCm: names come from the `-sys` crates.

mod elf;
mod error;
mod loaded;
mod release;
mod search;
#[doc(hidden)]
pub mod table;

pub use error::{LoadError, Tried};
pub use loaded::Loaded;
pub use release::{Floor, Release};
pub use search::Search;
