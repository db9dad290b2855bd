//! The half of every `-sys` crate's table of functions that finds a library.

// The macros work in crates without `std` too.
pub use std::path::Path;

use crate::Search;

/// A table of functions that says which library fills it.
///
/// [`library!`](crate::library) makes safe functions of this promise. The crate that has the table gives it, so one that
/// forbids `unsafe` cannot name a file of its own:
///
/// ```compile_fail,E0200
/// rocm_loader::function_table! {
///     /// A table.
///     pub struct Table;
///     pub fn run() -> i32;
/// }
///
/// impl rocm_loader::Library for Table {
///     const SEARCH: rocm_loader::Search = rocm_loader::Search {
///         library: "other",
///         env: "OTHER_LIBRARY",
///         sonames: &["/tmp/other.so"],
///         key_symbol: c"run",
///         once: &[],
///         fallback: None,
///         floor: None,
///     };
/// }
///
/// rocm_loader::library!(Table);
/// ```
///
/// # Safety
///
/// Files of the names in `SEARCH` are the library that the table is of: its makers let its initialisers run in any
/// process, and what has the key function has the C signatures of the slots. A `floor` calls its functions as they are.
pub unsafe trait Library {
    /// How the library is found.
    const SEARCH: Search;
}

/// Adds the entry points `SEARCH`, `load`, `load_from`, `load_beside` to a table with the functions of
/// [`function_table!`](crate::function_table), which is a [`Library`].
#[macro_export]
macro_rules! library {
    ($table:ident) => {
        impl $table {
            /// How the library is found.
            pub const SEARCH: $crate::Search = <Self as $crate::Library>::SEARCH;

            /// Finds and opens the library; the order is that of [`rocm_loader::Search`]($crate::Search).
            ///
            /// # Errors
            /// As [`Search::load`]($crate::Search::load): a value, with every path that was tried.
            pub fn load() -> Result<(Self, $crate::Loaded), $crate::LoadError> {
                // SAFETY: `Library` promises that such files are this library, whose initialisers may run.
                unsafe { Self::SEARCH.load() }.map(Self::of)
            }

            /// Opens this file.
            ///
            /// # Errors
            /// As [`Search::load_from`]($crate::Search::load_from).
            ///
            /// # Safety
            /// The file is the library that this table is of: its initialisers run, and its functions have the C
            /// signatures of the slots.
            pub unsafe fn load_from(path: &$crate::library::Path) -> Result<(Self, $crate::Loaded), $crate::LoadError> {
                // SAFETY: the caller's promise.
                unsafe { Self::SEARCH.load_from(path) }.map(Self::of)
            }

            /// Opens the copy in the folder of another library, hence of the same release.
            ///
            /// # Errors
            /// As [`Search::load_beside`]($crate::Search::load_beside).
            pub fn load_beside(neighbour: &$crate::Loaded) -> Result<(Self, $crate::Loaded), $crate::LoadError> {
                // SAFETY: as in `load`, in the folder of a library that a loader found.
                unsafe { Self::SEARCH.load_beside(neighbour) }.map(Self::of)
            }

            fn of(library: $crate::Loaded) -> (Self, $crate::Loaded) {
                // SAFETY: `Library` promises the signatures, and a slot's conditions leave it empty where the library
                // calls the function in another way.
                let table = unsafe { Self::from_symbols(|name| library.symbol(name)) };
                (table, library)
            }
        }
    };
}

/// Adds the entry point `linked` to a table with [`library!`](crate::library), for a crate whose build script links the
/// library.
///
/// `$function` is one that every supported release has. Only it is bound by the linker; all slots are then filled by
/// name from what the dynamic linker loaded, so a function of a newer release is an empty slot and not a program that
/// fails to start.
#[cfg(unix)]
#[macro_export]
macro_rules! linked {
    ($table:ident, $function:ident) => {
        impl $table {
            /// The library that this program is linked with, found by the dynamic linker when the program started.
            ///
            /// A preloaded library (`LD_PRELOAD`) may provide some of the functions.
            ///
            /// # Errors
            /// [`LoadError::TwoCopies`]($crate::LoadError::TwoCopies); a library that is absent stops the program
            /// before it can ask.
            pub fn linked() -> Result<(Self, $crate::Loaded), $crate::LoadError> {
                unsafe extern "C" {
                    // Its address is all that is used, so its arguments need not be right.
                    fn $function();
                }
                // SAFETY: as in `load`.
                unsafe { Self::SEARCH.linked($function) }.map(Self::of)
            }
        }
    };
}
