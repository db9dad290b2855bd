//! dot, nrm2, asum, iamax and iamin, and their `_64` forms: one number from a vector or two.
//!
//! Partial results of ranges of a fixed length are combined in their order, so a result is the same
//! bits on every run. Sums of magnitudes are held in double precision.
//!
//! Checks as in rocBLAS' library/src/blas1/rocblas_dot_imp.hpp and rocblas_reduction.hpp: without
//! elements the result is 0, for the forms with one vector also where the increment is not
//! positive.

use std::ops::Range;

use rocblas_sys::{rocblas_handle, rocblas_status};

use super::arguments::{Int, ensure};
use super::entry_points::{for_all_types, for_complex_types, for_real_types};
use super::handle;
use super::level1::{Given, length};
use super::pointer_mode::deliver;
use super::scalar::{Real, Scalar};
use super::schedule::sum_pieces;
use super::status::{Outcome, entry};
use super::vector::Vector;

/// Independent running sums, so that an addition need not wait for the one before.
const LANES: usize = 8;

/// The sum of `term(i)` over `range`.
fn sum<S: Copy>(range: Range<usize>, zero: S, add: impl Fn(S, S) -> S, term: impl Fn(usize) -> S) -> S {
    let mut lanes = [zero; LANES];
    let mut i = range.start;
    while i + LANES <= range.end {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = add(*sum, term(i + lane));
        }
        i += LANES;
    }
    let rest = (i..range.end).fold(zero, |sum, i| add(sum, term(i)));
    lanes.into_iter().fold(rest, add)
}

/// The sum of `x_i y_i`, with `x` conjugated if `conjugate`.
///
/// # Safety
/// The C caller's duties: in host pointer mode `result` is null or writable; the vectors are not
/// written by others until the stream has passed this call.
unsafe fn dot<T: Scalar, I: Int>(
    name: &'static str,
    handle: rocblas_handle,
    n: I,
    (x, y): (Given<T, I>, Given<T, I>),
    result: *mut T,
    conjugate: bool,
) -> Outcome {
    let handle = handle::current(handle)?;
    let n = length(n).unwrap_or(0);
    let (x, y) = (x.of(n), y.of(n));
    x.check(name, "x")?;
    y.check(name, "y")?;
    // SAFETY: the caller's promise.
    unsafe {
        deliver(&handle, name, result, move || {
            let add = |a: T, b: T| a + b;
            sum_pieces(n, T::ZERO, add, |range| {
                sum(range, T::ZERO, add, |i| {
                    // SAFETY: both vectors were checked to be device memory.
                    let (x, y) = (x.at(i).read(), y.at(i).read());
                    if conjugate { x.conjugate() * y } else { x * y }
                })
            })
        })
    }
}

/// Checks the vector of a reduction over one vector and delivers what `value` returns for it.
///
/// # Safety
/// As for [`dot`].
unsafe fn reduce<T: Scalar, I: Int, R: Copy + Send + 'static>(
    name: &'static str,
    handle: rocblas_handle,
    n: I,
    x: Given<T, I>,
    result: *mut R,
    value: unsafe fn(usize, Vector<T>) -> R,
) -> Outcome {
    let handle = handle::current(handle)?;
    ensure(!result.is_null(), rocblas_status::rocblas_status_invalid_pointer)?;
    let n = length(n).filter(|_| x.inc.signed() > 0).unwrap_or(0);
    let x = x.of(n);
    x.check(name, "x")?;
    // SAFETY: the caller's promise; the elements were checked to be device memory.
    unsafe { deliver(&handle, name, result, move || value(n, x)) }
}

fn magnitudes(n: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let add = |a: f64, b: f64| a + b;
    sum_pieces(n, 0.0, add, |range| sum(range, 0.0, add, &term))
}

/// # Safety
/// The elements are readable.
unsafe fn nrm2<T: Scalar>(n: usize, x: Vector<T>) -> T::Part {
    let squares = magnitudes(n, |i| {
        // SAFETY: the caller's promise.
        let x = unsafe { x.at(i).read() };
        let (re, im) = (x.re().widen(), x.im().widen());
        re * re + im * im
    });
    T::Part::narrow(squares.sqrt())
}

/// The magnitude that BLAS uses to compare and to add: no square root, `|re| + |im|`.
fn magnitude<T: Scalar>(x: T) -> f64 {
    x.re().widen().abs() + x.im().widen().abs()
}

/// # Safety
/// The elements are readable.
unsafe fn asum<T: Scalar>(n: usize, x: Vector<T>) -> T::Part {
    // SAFETY: the caller's promise.
    T::Part::narrow(magnitudes(n, |i| magnitude(unsafe { x.at(i).read() })))
}

/// The one-based index of the first element that no other one is `better` than; 0 without elements.
///
/// # Safety
/// The elements are readable.
unsafe fn extreme<T: Scalar, I: Int>(n: usize, x: Vector<T>, better: impl Fn(f64, f64) -> bool + Sync) -> I {
    let first = |a: Option<(usize, f64)>, b: Option<(usize, f64)>| match (a, b) {
        (Some(a), Some(b)) if better(b.1, a.1) => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    };
    let found = sum_pieces(n, None, first, |range| {
        range.fold(None, |best, i| {
            // SAFETY: the caller's promise.
            first(best, Some((i, magnitude(unsafe { x.at(i).read() }))))
        })
    });
    I::from_index(found.map_or(0, |(i, _)| i + 1))
}

/// # Safety
/// As for [`extreme`].
unsafe fn iamax<T: Scalar, I: Int>(n: usize, x: Vector<T>) -> I {
    // SAFETY: the caller's promise.
    unsafe { extreme(n, x, |new, old| new > old) }
}

/// # Safety
/// As for [`extreme`].
unsafe fn iamin<T: Scalar, I: Int>(n: usize, x: Vector<T>) -> I {
    // SAFETY: the caller's promise.
    unsafe { extreme(n, x, |new, old| new < old) }
}

macro_rules! dot {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $conjugate:literal) => {
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            x: *const $c,
            incx: $int,
            y: *const $c,
            incy: $int,
            result: *mut $c,
        ) -> rocblas_status {
            let x = Given::<$rust, _> {
                ptr: x.cast(),
                inc: incx,
            };
            let y = Given {
                ptr: y.cast(),
                inc: incy,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                dot(name, handle, n, (x, y), result.cast(), $conjugate)
            })
        }
    };
}
macro_rules! dotu {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        dot!($name, $int, $c, $rust, false);
    };
}
macro_rules! dotc {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        dot!($name, $int, $c, $rust, true);
    };
}
for_real_types!(dotu: rocblas_sdot rocblas_ddot; rocblas_sdot_64 rocblas_ddot_64);
for_complex_types!(dotu: rocblas_cdotu rocblas_zdotu; rocblas_cdotu_64 rocblas_zdotu_64);
for_complex_types!(dotc: rocblas_cdotc rocblas_zdotc; rocblas_cdotc_64 rocblas_zdotc_64);

macro_rules! reduction {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $result:ty, $value:ident) => {
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            x: *const $c,
            incx: $int,
            result: *mut $result,
        ) -> rocblas_status {
            let x = Given::<$rust, _> {
                ptr: x.cast(),
                inc: incx,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                reduce(name, handle, n, x, result, $value)
            })
        }
    };
}
macro_rules! nrm2 {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        reduction!($name, $int, $c, $rust, <$rust as Scalar>::Part, nrm2);
    };
}
macro_rules! asum {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        reduction!($name, $int, $c, $rust, <$rust as Scalar>::Part, asum);
    };
}
macro_rules! iamax {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        reduction!($name, $int, $c, $rust, $int, iamax);
    };
}
macro_rules! iamin {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        reduction!($name, $int, $c, $rust, $int, iamin);
    };
}
for_all_types!(nrm2: rocblas_snrm2 rocblas_dnrm2 rocblas_scnrm2 rocblas_dznrm2;
    rocblas_snrm2_64 rocblas_dnrm2_64 rocblas_scnrm2_64 rocblas_dznrm2_64);
for_all_types!(asum: rocblas_sasum rocblas_dasum rocblas_scasum rocblas_dzasum;
    rocblas_sasum_64 rocblas_dasum_64 rocblas_scasum_64 rocblas_dzasum_64);
for_all_types!(iamax: rocblas_isamax rocblas_idamax rocblas_icamax rocblas_izamax;
    rocblas_isamax_64 rocblas_idamax_64 rocblas_icamax_64 rocblas_izamax_64);
for_all_types!(iamin: rocblas_isamin rocblas_idamin rocblas_icamin rocblas_izamin;
    rocblas_isamin_64 rocblas_idamin_64 rocblas_icamin_64 rocblas_izamin_64);
