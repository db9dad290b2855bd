//! axpy, scal, copy and swap: `rocblas_{s,d,c,z}…`, `rocblas_{cs,zd}scal` and their `_64` forms.
//!
//! Level 1 has quick returns where the other levels have errors: no elements, or none because the
//! number is negative, is success before any pointer is checked (rocBLAS:
//! library/src/blas1/rocblas_axpy.hpp and its neighbours).

use std::ops::Mul;

use rocblas_sys::rocblas_handle;

use super::arguments::{Int, enqueue};
use super::family::{CType, families};
use super::handle;
use super::pointer_mode::with_scalars;
use super::scalar::Scalar;
use super::schedule::for_pieces;
use super::status::Outcome;
use super::vector::Vector;

/// The length of a level-1 vector; `None` if there is nothing to do.
pub(super) fn length<I: Int>(n: I) -> Option<usize> {
    n.size().filter(|&n| n > 0)
}

/// The arguments that a vector comes as.
#[derive(Clone, Copy)]
pub(super) struct Given<T, I> {
    pub(super) ptr: *const T,
    pub(super) inc: I,
}

impl<T, I: Int> Given<T, I> {
    /// A vector of C elements.
    pub(super) fn new<C: CType<Element = T>>(ptr: *const C, inc: I) -> Self {
        Self { ptr: ptr.cast(), inc }
    }

    pub(super) fn of(self, n: usize) -> Vector<T> {
        Vector::new(self.ptr, n, self.inc.signed())
    }

    /// All elements are in one place.
    fn stands(&self) -> bool {
        self.inc.signed() == 0
    }
}

/// `y := alpha x + y`. `x` and `y` may be the same vector.
///
/// # Safety
/// The C caller's duties: in host pointer mode `alpha` is null or readable; the vectors are not
/// touched by others until the stream has passed this call.
unsafe fn axpy<T: Scalar, I: Int>(
    name: &'static str,
    handle: rocblas_handle,
    n: I,
    alpha: *const T,
    x: Given<T, I>,
    y: Given<T, I>,
) -> Outcome {
    let handle = handle::current(handle)?;
    let Some(n) = length(n) else { return Ok(()) };
    let (x, y) = (x.of(n), y.of(n));
    let check = move |[alpha]: [T; 1]| {
        if alpha == T::ZERO {
            return Ok(false);
        }
        x.check(name, "x")?;
        y.check_result(name, "y")?;
        if !x.is(&y) {
            x.ensure_apart(name, "x", y.elements())?;
        }
        Ok(true)
    };
    let work = move |[alpha]: [T; 1]| {
        for_pieces(n, |range| {
            for i in range {
                // SAFETY: both vectors were checked to be device memory, and no two results are in
                // one place; the caller promises that nothing else touches them.
                unsafe {
                    let y = y.at(i);
                    y.write(alpha * x.at(i).read() + y.read());
                }
            }
        });
    };
    // SAFETY: the caller's promise for `alpha`; `check` looks at all that `work` touches.
    unsafe { with_scalars(&handle, name, [alpha], check, work) }
}

/// `x := alpha x`, with `alpha` of the element's type or of its real part's.
///
/// # Safety
/// As for [`axpy`].
unsafe fn scal<T: Scalar + Mul<S, Output = T>, S: Scalar, I: Int>(
    name: &'static str,
    handle: rocblas_handle,
    n: I,
    alpha: *const S,
    x: Given<T, I>,
) -> Outcome {
    let handle = handle::current(handle)?;
    let Some(n) = length(n).filter(|_| x.inc.signed() > 0) else {
        return Ok(());
    };
    let x = x.of(n);
    let check = move |[alpha]: [S; 1]| {
        if alpha == S::ONE {
            return Ok(false);
        }
        x.check_result(name, "x")?;
        Ok(true)
    };
    let work = move |[alpha]: [S; 1]| {
        for_pieces(n, |range| {
            for i in range {
                // SAFETY: checked to be device memory; the caller promises that nothing else
                // touches it.
                unsafe {
                    let x = x.at(i);
                    x.write(x.read() * alpha);
                }
            }
        });
    };
    // SAFETY: the caller's promise for `alpha`; `check` looks at all that `work` touches.
    unsafe { with_scalars(&handle, name, [alpha], check, work) }
}

/// Calls `step` with the addresses of the elements of `x` and `y`. `y` is written, and `x` too if
/// `both` are.
///
/// # Safety
/// `step` may be called on elements that may be touched. The C caller's duty: the vectors are not
/// touched by others until the stream has passed this call.
unsafe fn pairwise<T: Scalar, I: Int>(
    name: &'static str,
    handle: rocblas_handle,
    n: I,
    (x, y, both): (Given<T, I>, Given<T, I>, bool),
    step: unsafe fn(*mut T, *mut T),
) -> Outcome {
    let handle = handle::current(handle)?;
    let Some(n) = length(n) else { return Ok(()) };
    // One number copied to one place n times is that number, whatever the order.
    let n = if !both && x.stands() && y.stands() { 1 } else { n };
    let (x, y) = (x.of(n), y.of(n));
    if both {
        x.check_result(name, "x")?;
    } else {
        x.check(name, "x")?;
    }
    y.check_result(name, "y")?;
    if x.is(&y) {
        return Ok(());
    }
    x.ensure_apart(name, "x", y.elements())?;
    enqueue(&handle, name, move || {
        for_pieces(n, |range| {
            for i in range {
                // SAFETY: both vectors were checked to be device memory and not to meet; the caller
                // promises that nothing else touches them.
                unsafe { step(x.at(i), y.at(i)) };
            }
        });
    })
}

/// # Safety
/// `from` is readable, `to` writable.
unsafe fn copy_one<T: Scalar>(from: *mut T, to: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { to.write(from.read()) };
}

/// # Safety
/// Both are readable and writable.
unsafe fn swap_one<T: Scalar>(x: *mut T, y: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { x.swap(y) };
}

families! {
    /// axpy, scal, copy and swap.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d c z] [axpy] [plain] [32 64] (n: I, alpha: *const T, x: *const T, incx: I, y: *mut T, incy: I)
        => |name, handle| axpy::<E, I>(name, handle, n, alpha.cast(), Given::new(x, incx), Given::new(y, incy));
    rocblas_ [s d c z] [scal] [plain] [32 64] (n: I, alpha: *const T, x: *mut T, incx: I)
        => |name, handle| scal::<E, E, I>(name, handle, n, alpha.cast(), Given::new(x, incx));
    rocblas_ [cs zd] [scal] [plain] [32 64] (n: I, alpha: *const R, x: *mut T, incx: I)
        => |name, handle| scal::<E, R, I>(name, handle, n, alpha, Given::new(x, incx));
    rocblas_ [s d c z] [copy] [plain] [32 64] (n: I, x: *const T, incx: I, y: *mut T, incy: I)
        => |name, handle| pairwise(name, handle, n, (Given::new(x, incx), Given::new(y, incy), false), copy_one::<E>);
    rocblas_ [s d c z] [swap] [plain] [32 64] (n: I, x: *mut T, incx: I, y: *mut T, incy: I)
        => |name, handle| pairwise(name, handle, n, (Given::new(x, incx), Given::new(y, incy), true), swap_one::<E>);
}
