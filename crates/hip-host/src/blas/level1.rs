//! axpy, scal, copy and swap: `rocblas_{s,d,c,z}…`, `rocblas_{cs,zd}scal` and their `_64` forms.
//!
//! Level 1 has quick returns where the other levels have errors: no elements, or none because the
//! number is negative, is success before any pointer is checked (rocBLAS:
//! library/src/blas1/rocblas_axpy.hpp and its neighbours).

use std::ops::Mul;

use num_complex::Complex;
use rocblas_sys::{rocblas_double_complex, rocblas_float_complex, rocblas_handle, rocblas_int, rocblas_status};

use super::arguments::{Int, enqueue};
use super::entry_points::for_all_types;
use super::handle;
use super::pointer_mode::with_scalars;
use super::scalar::Scalar;
use super::schedule::for_pieces;
use super::status::{Outcome, entry};
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

macro_rules! axpy {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            alpha: *const $c,
            x: *const $c,
            incx: $int,
            y: *mut $c,
            incy: $int,
        ) -> rocblas_status {
            let x = Given::<$rust, _> {
                ptr: x.cast(),
                inc: incx,
            };
            let y = Given {
                ptr: y.cast_const().cast(),
                inc: incy,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                axpy(name, handle, n, alpha.cast(), x, y)
            })
        }
    };
}
for_all_types!(axpy: rocblas_saxpy rocblas_daxpy rocblas_caxpy rocblas_zaxpy;
    rocblas_saxpy_64 rocblas_daxpy_64 rocblas_caxpy_64 rocblas_zaxpy_64);

macro_rules! scal_by {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $scalar:ty, $scalar_rust:ty) => {
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            alpha: *const $scalar,
            x: *mut $c,
            incx: $int,
        ) -> rocblas_status {
            let x = Given::<$rust, _> {
                ptr: x.cast_const().cast(),
                inc: incx,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                scal(name, handle, n, alpha.cast::<$scalar_rust>(), x)
            })
        }
    };
}
macro_rules! scal {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        scal_by!($name, $int, $c, $rust, $c, $rust);
    };
}
for_all_types!(scal: rocblas_sscal rocblas_dscal rocblas_cscal rocblas_zscal;
    rocblas_sscal_64 rocblas_dscal_64 rocblas_cscal_64 rocblas_zscal_64);
scal_by!(
    rocblas_csscal,
    rocblas_int,
    rocblas_float_complex,
    Complex<f32>,
    f32,
    f32
);
scal_by!(
    rocblas_zdscal,
    rocblas_int,
    rocblas_double_complex,
    Complex<f64>,
    f64,
    f64
);
scal_by!(rocblas_csscal_64, i64, rocblas_float_complex, Complex<f32>, f32, f32);
scal_by!(rocblas_zdscal_64, i64, rocblas_double_complex, Complex<f64>, f64, f64);

macro_rules! pairwise {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $x:ty, $both:literal, $step:ident) => {
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            x: $x,
            incx: $int,
            y: *mut $c,
            incy: $int,
        ) -> rocblas_status {
            let x = Given::<$rust, _> {
                ptr: x.cast(),
                inc: incx,
            };
            let y = Given {
                ptr: y.cast_const().cast(),
                inc: incy,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                pairwise(name, handle, n, (x, y, $both), $step)
            })
        }
    };
}
macro_rules! copy {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        pairwise!($name, $int, $c, $rust, *const $c, false, copy_one);
    };
}
for_all_types!(copy: rocblas_scopy rocblas_dcopy rocblas_ccopy rocblas_zcopy;
    rocblas_scopy_64 rocblas_dcopy_64 rocblas_ccopy_64 rocblas_zcopy_64);
macro_rules! swap {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        pairwise!($name, $int, $c, $rust, *mut $c, true, swap_one);
    };
}
for_all_types!(swap: rocblas_sswap rocblas_dswap rocblas_cswap rocblas_zswap;
    rocblas_sswap_64 rocblas_dswap_64 rocblas_cswap_64 rocblas_zswap_64);
