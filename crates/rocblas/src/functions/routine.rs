//! The C functions of one routine for each scalar, with 32-bit sizes and with 64-bit ones.

use crate::{Error, Result};

/// A Rust scalar that has the layout of a C type.
pub trait CType: Sized {
    /// The C type.
    type Raw;
    /// The C type of its real part.
    type RawReal;
}

/// The two functions of a routine. The `_64` one came later, level by level.
#[derive(Debug)]
pub struct Routine<Narrow, Wide> {
    pub narrow: (&'static str, Option<Narrow>),
    pub wide: (&'static str, Option<Wide>),
    /// The ROCm release that brought the `_64` function.
    pub wide_since: &'static str,
}

impl<Narrow, Wide> Routine<Narrow, Wide> {
    /// The function for sizes that do not all fit 32 bits; `large` is one that does not.
    pub(crate) fn wide(&self, large: (&'static str, i64)) -> Result<Wide>
    where
        Wide: Copy,
    {
        let (symbol, function) = self.wide;
        function.ok_or(Error::No64Bit {
            symbol,
            what: large.0,
            value: large.1,
            since: self.wide_since,
        })
    }
}

/// The functions of a routine: a trait that returns them for each scalar.
///
/// `routine!(Gemm::gemm: Signature, "6.3" { f32: rocblas_sgemm, rocblas_sgemm_64; … })` makes the trait `Gemm` with the
/// function `gemm`. `Signature<S, I>` is the C signature for the scalar `S` and sizes of type `I`.
macro_rules! routine {
    ($trait:ident::$method:ident: $signature:ident, $since:literal {
        $($scalar:ty: $narrow:ident, $wide:ident;)+
    }) => {
        pub trait $trait: $crate::functions::CType {
            fn $method(
                api: &rocblas_sys::Api,
            ) -> $crate::functions::Routine<$signature<Self, rocblas_sys::rocblas_int>, $signature<Self, i64>>;
        }
        $(
            impl $trait for $scalar {
                fn $method(
                    api: &rocblas_sys::Api,
                ) -> $crate::functions::Routine<$signature<Self, rocblas_sys::rocblas_int>, $signature<Self, i64>> {
                    $crate::functions::Routine {
                        narrow: (stringify!($narrow), api.$narrow),
                        wide: (stringify!($wide), api.$wide),
                        wide_since: $since,
                    }
                }
            }
        )+
    };
}

pub(crate) use routine;
