//! The half of every `-sys` crate's table of functions that finds a library.

// The macros work in crates without `std` too.
pub use std::path::Path;

/// Adds the entry points `SEARCH`, `load`, `load_from`, `load_beside` to a table with the functions of
/// [`function_table!`](crate::function_table).
#[macro_export]
macro_rules! library {
    ($table:ident, $search:expr) => {
        impl $table {
            /// How the library is found.
            pub const SEARCH: $crate::Search = $search;

            /// Finds and opens the library; the order is that of [`rocm_loader::Search`]($crate::Search).
            ///
            /// # Errors
            /// As [`Search::load`]($crate::Search::load): a value, with every path that was tried.
            pub fn load() -> Result<(Self, $crate::Loaded), $crate::LoadError> {
                // SAFETY: the search names this library and no other; its makers let its initialisers run in any
                // process.
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
                // SAFETY: a library that has the key function is the one whose headers gave the slots their types, and
                // `FORMS` leaves a slot empty where the library calls the function in another way.
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
                Self::SEARCH.linked($function).map(Self::of)
            }
        }
    };
}
