//! The element types, and what cuSOLVER and cuBLAS call their routines.

use rocblas_sys::{rocblas_double_complex, rocblas_float_complex};

use crate::cuda::{Symbol, c_name};

pub(super) type C32 = rocblas_float_complex;
pub(super) type C64 = rocblas_double_complex;

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
    /// cuBLAS', as all below.
    pub(super) getri_batched: Symbol,
    pub(super) gemm_strided_batched: Symbol,
}

/// An element of a matrix.
pub(crate) trait Scalar: Copy + 'static {
    /// Whether its numbers have 64 bits.
    const DOUBLE: bool;

    fn names() -> &'static Names;

    /// A small whole number.
    fn whole(value: i8) -> Self;
}

macro_rules! scalar {
    ($ty:ty, $letter:literal, $double:literal, $value:ident => $whole:expr) => {
        impl Scalar for $ty {
            const DOUBLE: bool = $double;

            fn whole($value: i8) -> Self {
                $whole
            }

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
                    gemm_strided_batched: symbol!("cublas", "gemmStridedBatched"),
                };
                &NAMES
            }
        }
    };
}

scalar!(f32, "S", false, value => value.into());
scalar!(f64, "D", true, value => value.into());
scalar!(C32, "C", false, value => C32 { x: value.into(), y: 0.0 });
scalar!(C64, "Z", true, value => C64 { x: value.into(), y: 0.0 });
