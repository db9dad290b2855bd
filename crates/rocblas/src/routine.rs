//! A routine of rocBLAS: its C functions for each scalar, with 32-bit sizes and with 64-bit ones, and one way to call
//! them.

use rocblas_sys::Api;

use crate::{Error, Result};

/// A Rust scalar that has the layout of a C type.
pub trait CType: Sized {
    /// The C type.
    type Raw;
    /// The C type of its real part.
    type RawReal;
}

/// The two functions of a routine. The `_64` one came later, level by level.
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

/// The first size that a `rocblas_int` cannot hold.
#[inline]
pub(crate) fn large(sizes: &[(&'static str, i64)]) -> Option<(&'static str, i64)> {
    let fits = |value| rocblas_sys::rocblas_int::try_from(value).is_ok();
    sizes.iter().copied().find(|&(_, value)| !fits(value))
}

/// The functions of a routine: a trait that returns them for each scalar.
///
/// `routine!(Gemm::gemm: Signature, "6.3" { f32: rocblas_sgemm, rocblas_sgemm_64; … })` makes the trait `Gemm` with the function
/// `gemm`. `Signature<S, I>` is the C signature for the scalar `S` and sizes of type `I`.
macro_rules! routine {
    ($trait:ident::$method:ident: $signature:ident, $since:literal {
        $($scalar:ty: $narrow:ident, $wide:ident;)+
    }) => {
        pub trait $trait: $crate::routine::CType {
            fn $method(
                api: &rocblas_sys::Api,
            ) -> $crate::routine::Routine<$signature<Self, rocblas_sys::rocblas_int>, $signature<Self, i64>>;
        }
        $(
            impl $trait for $scalar {
                fn $method(
                    api: &rocblas_sys::Api,
                ) -> $crate::routine::Routine<$signature<Self, rocblas_sys::rocblas_int>, $signature<Self, i64>> {
                    $crate::routine::Routine {
                        narrow: (stringify!($narrow), api.$narrow),
                        wide: (stringify!($wide), api.$wide),
                        wide_since: $since,
                    }
                }
            }
        )+
    };
}

/// Calls a routine: the function whose sizes are wide enough, in the pointer mode that the scalars need.
///
/// `call!(handle, mode, T::gemm, (m, n, k), |gemm| unsafe { gemm(…, m, n, k) }, "m {m}, n {n}, k {k}")`. Inside the call the sizes
/// are of the function's own type. The text is only formatted on failure. Is a `Result<()>`, and returns early from the function
/// around it if the routine is missing or the mode cannot be set.
macro_rules! call {
    ($handle:expr, $mode:expr, $routine:expr, ($($size:ident),+), |$function:ident| $call:expr, $($text:tt)+) => {{
        let handle: &$crate::Handle = $handle;
        let routine = $crate::routine::of($routine, handle.library().api());
        let (name, status) = match $crate::routine::large(&[$((stringify!($size), $size)),+]) {
            None => {
                let (name, function) = routine.narrow;
                let $function = $crate::call::slot(function, name)?;
                $(let $size = $size as rocblas_sys::rocblas_int;)+
                (name, handle.submit($mode, || $call)?)
            }
            Some(large) => {
                let $function = routine.wide(large)?;
                (routine.wide.0, handle.submit($mode, || $call)?)
            }
        };
        // Either way there is no result that could be taken for written.
        handle
            .accept(status, || format!("{name}({})", format_args!($($text)+)))
            .map(|_| ())
    }};
}

/// Gives `call!` the types of a routine before it looks into it.
pub(crate) fn of<Narrow, Wide>(
    routine: fn(&Api) -> Routine<Narrow, Wide>,
    api: &Api,
) -> Routine<Narrow, Wide> {
    routine(api)
}

pub(crate) use {call, routine};
