//! The table of OpenCL function pointers.
//!
//! | file | what it holds |
//! |---|---|
//! | `core.rs`, generated | a slot for each function of OpenCL 1.0 to 3.0, from Khronos' headers |
//! | `extension.rs`, generated | the types of the extensions' functions that this crate uses |
//! | this one | filling the table, and asking it what it holds |

#[rustfmt::skip]
mod core;
#[rustfmt::skip]
pub(crate) mod extension;

use std::ffi::{CStr, c_void};

pub use self::core::Api;
pub(crate) use self::core::core_functions;
use crate::error::Error;

macro_rules! table {
    ($($name:ident $major:literal $minor:literal;)*) => {
        impl Api {
            /// A table with every slot empty.
            pub const EMPTY: Self = Self { $($name: None,)* };

            /// The symbols that the table has slots for, in the order of the slots.
            pub const SYMBOLS: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Fills the table from `resolve`, which is called once for each symbol.
            ///
            /// # Safety
            ///
            /// Each address that `resolve` returns is the function of that name with the
            /// signature of the OpenCL specification, and stays valid for ever.
            #[must_use]
            pub unsafe fn from_symbols(
                mut resolve: impl FnMut(&CStr) -> Option<*mut c_void>,
            ) -> Self {
                let mut find = |name: &'static str| {
                    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
                    resolve(name).filter(|address| !address.is_null())
                };
                let mut table = Self::EMPTY;
                $(if let Some(address) = find(concat!(stringify!($name), "\0")) {
                    // SAFETY: the caller promises that the address is this function.
                    unsafe { fill(&mut table.$name, address) };
                })*
                table
            }

            /// The names of the filled slots.
            pub fn present(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($name), self.$name.is_some()),)*]
                    .into_iter()
                    .filter_map(|(name, filled)| filled.then_some(name))
            }

            /// The OpenCL version that introduced `symbol`.
            #[must_use]
            pub fn since(symbol: &str) -> Option<&'static str> {
                match symbol {
                    $(stringify!($name) => Some(concat!($major, ".", $minor)),)*
                    _ => None,
                }
            }
        }
    };
}
core_functions!(table);

/// Puts the function at `address` into a slot.
///
/// # Safety
///
/// `F` is the type of the function pointer that is at the address.
unsafe fn fill<F>(slot: &mut Option<F>, address: *mut c_void) {
    const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's promise; a data pointer has the size and the validity of an `Option` of a
    // function pointer.
    *slot = unsafe { std::mem::transmute_copy::<*mut c_void, Option<F>>(&address) };
}

impl Error {
    pub(crate) fn missing(symbol: &'static str) -> Self {
        Self::MissingFunction {
            symbol,
            since: Api::since(symbol).unwrap_or("an unknown version"),
        }
    }
}

/// Takes a function out of a slot, or returns the error that names it.
macro_rules! slot {
    ($api:expr, $name:ident) => {
        $api.$name
            .ok_or_else(|| $crate::error::Error::missing(stringify!($name)))
    };
}
pub(crate) use slot;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_has_no_function_and_a_full_one_has_all() {
        assert_eq!(Api::EMPTY.present().count(), 0);
        let address = std::ptr::dangling_mut::<c_void>();
        // SAFETY: the addresses are never called.
        let full = unsafe { Api::from_symbols(|_| Some(address)) };
        assert!(full.present().eq(Api::SYMBOLS.iter().copied()));
    }

    /// The names of a header's functions for each version are the specification's: spot checks
    /// of the functions whose versions decide what the other modules may call.
    #[test]
    fn slots_know_the_version_that_brought_them() {
        for (symbol, since) in [
            ("clCreateCommandQueue", "1.0"),
            ("clCreateSubBuffer", "1.1"),
            ("clEnqueueFillBuffer", "1.2"),
            ("clSVMAlloc", "2.0"),
            ("clCloneKernel", "2.1"),
            ("clSetProgramSpecializationConstant", "2.2"),
            ("clCreateBufferWithProperties", "3.0"),
        ] {
            assert_eq!(Api::since(symbol), Some(since), "{symbol}");
        }
        assert_eq!(Api::since("clCreateSemaphoreWithPropertiesKHR"), None);
    }

    #[test]
    fn a_null_address_leaves_the_slot_empty() {
        // SAFETY: no address is given.
        let table = unsafe { Api::from_symbols(|_| Some(std::ptr::null_mut())) };
        assert_eq!(table.present().count(), 0);
    }

    #[test]
    fn a_missing_function_is_reported_with_its_version() {
        let error = slot!(Api::EMPTY, clSVMAlloc).unwrap_err().to_string();
        assert!(error.contains("clSVMAlloc") && error.contains("2.0"), "{error}");
    }
}
