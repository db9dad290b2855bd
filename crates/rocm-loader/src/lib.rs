//! Finds and opens the shared libraries of a ROCm installation, and turns them into tables of optional functions.
//!
//! | file | what |
//! |---|---|
//! | `table.rs` | [`function_table!`] makes a `-sys` crate's `Api` from its list of functions, with `core` only; [`model_functions!`] hands part of the list to another macro |
//! | `types.rs` | [`enum_names!`] and [`layouts!`]: the names of C enums, and checks of C structures |
//! | `library.rs` | [`Library`], `library!` and `linked!`: the half that finds a library |
//! | `search.rs` | where a library is looked for, in which order |
//! | `installations.rs` | where ROCm lies, the newest release first, and which files belong together |
//! | `loaded.rs` | an open library; it is never closed |
//! | `once.rs` | two files of one runtime in a process are an error |
//! | `elf.rs` | why a file can't be a library of this machine, before the dynamic linker is called |
//! | `release.rs` | ROCm's release numbers, and the oldest one that is supported |
//! | `error.rs` | what can go wrong, one line each |
//! | `build.rs` | the link line, for build scripts |
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | everything but `table.rs`, `types.rs` and the numbers of `release.rs`; without it the crate is `no_std` |
//! | `build` | no | `build.rs`, for build scripts |
//!
//! The names of files are those of Linux. On another system `load_from` opens the file passed to it, and `load` returns
//! [`LoadError::NotFound`].
//!
//! This crate knows no ROCm function: names come from the `-sys` crates. It never panics or ends the process: any
//! problem with an installation is a [`LoadError`].

#![cfg_attr(not(any(feature = "load", feature = "build", test)), no_std)]

// Its tests need no build script.
#[cfg(any(feature = "build", test))]
pub mod build;
#[cfg(feature = "load")]
mod elf;
#[cfg(feature = "load")]
mod error;
#[cfg(any(feature = "load", feature = "build", test))]
mod installations;
#[cfg(feature = "load")]
#[doc(hidden)]
pub mod library;
#[cfg(feature = "load")]
mod loaded;
#[cfg(feature = "load")]
mod once;
mod release;
#[cfg(feature = "load")]
mod search;
#[doc(hidden)]
pub mod table;
#[doc(hidden)]
pub mod types;

#[cfg(feature = "load")]
pub use error::{LoadError, Tried};
#[cfg(feature = "load")]
pub use library::Library;
#[cfg(feature = "load")]
pub use loaded::Loaded;
#[cfg(feature = "load")]
pub use release::Floor;
pub use release::Release;
#[cfg(feature = "load")]
pub use search::Search;
