//! One way to call a routine of rocBLAS.

use rocblas_sys::Api;

use crate::functions::Routine;

/// The first size that a `rocblas_int` cannot hold.
#[inline]
pub(crate) fn large(sizes: &[(&'static str, i64)]) -> Option<(&'static str, i64)> {
    let fits = |value| rocblas_sys::rocblas_int::try_from(value).is_ok();
    sizes.iter().copied().find(|&(_, value)| !fits(value))
}

/// Calls a routine: the function whose sizes are wide enough, in the pointer mode that the scalars need.
///
/// `call!(handle, mode, T::gemm, (m, n, k), |gemm| unsafe { gemm(…, m, n, k) }, "m {m}, n {n}, k {k}")`. Inside the
/// call the sizes are of the function's own type. The text is only formatted on failure. Is a `Result<()>`, and returns
/// early from the function around it if the routine is missing or the mode cannot be set.
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

/// A routine that is not of a scalar: `both!(rocblas_gemm_ex, rocblas_gemm_ex_64, "6.3")`, the second since this release.
macro_rules! both {
    ($narrow:ident, $wide:ident, $since:literal) => {
        |api| $crate::functions::Routine {
            narrow: (stringify!($narrow), api.$narrow),
            wide: (stringify!($wide), api.$wide),
            wide_since: $since,
        }
    };
}

/// Gives `call!` the types of a routine before it looks into it.
pub(crate) fn of<Narrow, Wide>(routine: fn(&Api) -> Routine<Narrow, Wide>, api: &Api) -> Routine<Narrow, Wide> {
    routine(api)
}

pub(crate) use {both, call};
