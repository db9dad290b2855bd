//! The element types, and what cuSOLVER and cuBLAS call their routines.

use crate::cuda::{Symbol, c_name};

use super::{C32, C64};

/// The routines of one element type.
pub(crate) struct Names {
    pub(super) potrf_size: Symbol,
    pub(super) potrf: Symbol,
    pub(super) potri_size: Symbol,
    pub(super) potri: Symbol,
    pub(super) potrs: Symbol,
    pub(super) getrf_size: Symbol,
    pub(super) getrf: Symbol,
    pub(super) getrs: Symbol,
    /// cuBLAS'.
    pub(super) getri_batched: Symbol,
}

/// An element of a matrix.
pub(crate) trait Scalar: Copy + 'static {
    /// Whether its numbers have 64 bits.
    const DOUBLE: bool;

    fn names() -> &'static Names;
}

macro_rules! scalar {
    ($ty:ty, $letter:literal, $double:literal) => {
        impl Scalar for $ty {
            const DOUBLE: bool = $double;

            fn names() -> &'static Names {
                macro_rules! symbol {
                    ($before:literal, $after:literal) => {
                        Symbol::new(c_name(concat!($before, $letter, $after, "\0")))
                    };
                }
                static NAMES: Names = Names {
                    potrf_size: symbol!("cusolverDn", "potrf_bufferSize"),
                    potrf: symbol!("cusolverDn", "potrf"),
                    potri_size: symbol!("cusolverDn", "potri_bufferSize"),
                    potri: symbol!("cusolverDn", "potri"),
                    potrs: symbol!("cusolverDn", "potrs"),
                    getrf_size: symbol!("cusolverDn", "getrf_bufferSize"),
                    getrf: symbol!("cusolverDn", "getrf"),
                    getrs: symbol!("cusolverDn", "getrs"),
                    getri_batched: symbol!("cublas", "getriBatched"),
                };
                &NAMES
            }
        }
    };
}

scalar!(f32, "S", false);
scalar!(f64, "D", true);
scalar!(C32, "C", false);
scalar!(C64, "Z", true);
