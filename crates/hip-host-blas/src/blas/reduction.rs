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
use super::family::families;
use super::handle;
use super::level1::{Given, length};
use super::pointer_mode::deliver;
use super::scalar::{Real, Scalar};
use super::schedule::sum_pieces;
use super::status::Outcome;
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

families! {
    /// dot, nrm2, asum, iamax and iamin.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d] [dot] [plain] [32 64] (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        => |name, handle| dot::<E, I>(
            name, handle, n, (Given::new(x, incx), Given::new(y, incy)), result.cast(), false);
    rocblas_ [c z] [dotu] [plain] [32 64] (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        => |name, handle| dot::<E, I>(
            name, handle, n, (Given::new(x, incx), Given::new(y, incy)), result.cast(), false);
    rocblas_ [c z] [dotc] [plain] [32 64] (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        => |name, handle| dot::<E, I>(
            name, handle, n, (Given::new(x, incx), Given::new(y, incy)), result.cast(), true);
    rocblas_ [s d sc dz] [nrm2] [plain] [32 64] (n: I, x: *const T, incx: I, result: *mut R)
        => |name, handle| reduce(name, handle, n, Given::new(x, incx), result, nrm2::<E>);
    rocblas_ [s d sc dz] [asum] [plain] [32 64] (n: I, x: *const T, incx: I, result: *mut R)
        => |name, handle| reduce(name, handle, n, Given::new(x, incx), result, asum::<E>);
    rocblas_ [is id ic iz] [amax] [plain] [32 64] (n: I, x: *const T, incx: I, result: *mut I)
        => |name, handle| reduce(name, handle, n, Given::new(x, incx), result, iamax::<E, I>);
    rocblas_ [is id ic iz] [amin] [plain] [32 64] (n: I, x: *const T, incx: I, result: *mut I)
        => |name, handle| reduce(name, handle, n, Given::new(x, incx), result, iamin::<E, I>);
}
