//! Finds and opens the shared libraries of a ROCm installation, and turns them into tables of optional functions.
//!
//! | file | what |
//! |---|---|
//! | `table.rs` | [`function_table!`] makes a `-sys` crate's `Api` from its list of functions, with `core` only; [`model_functions!`] hands part of the list to another macro |
//! | `types.rs` | [`enum_names!`] and [`layouts!`]: the names of C enums, and checks of C structures |
//! | `library.rs` | [`Library`], `library!` and `linked!`: the part that finds a library |
//! | `search.rs` | the search order for a library |
//! | `installations.rs` | the installations of ROCm, the newest release first, and which files belong together |
//! | `loaded.rs` | an open library; it is never closed |
//! | `once.rs` | two files of one runtime in a process are an error |
//! | `elf.rs` | why a file cannot be a library for this machine, before the dynamic linker is called |
//! | `release.rs` | ROCm release numbers, and the oldest supported release |
//! | `error.rs` | the errors, one line each |
//! | `build.rs` | the link line, for build scripts |
//!
//! | feature | default | what |
//! |---|---|---|
//! | `load` | yes | everything but `table.rs`, `types.rs` and the numbers of `release.rs`; without it the crate is `no_std` |
//! | `build` | no | `build.rs`, for build scripts |
//!
//! File names are those of Linux. On another system, `load_from` opens the file passed to it, and `load` returns
//! [`LoadError::NotFound`].
//!
//! This crate does not know any ROCm function: the names come from the `-sys` crates. It never panics or ends the
//! process: any problem with an installation is a [`LoadError`].

#![cfg_attr(not(any(feature = "load", feature = "build", test)), no_std)]

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
