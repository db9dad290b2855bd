//! The entry points `rocsolver_{s,d,c,z}potrf` (also `..._strided_batched` and `_64`) and
//! `rocsolver_{s,d,c,z}potri` (also `..._strided_batched`).

use num_complex::Complex;
use rocblas_sys::{
    rocblas_double_complex, rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_int,
    rocblas_status, rocblas_stride,
};

use super::cholesky;
use super::info::Info;
use crate::blas::aliasing::ensure_apart;
use crate::blas::arguments::{Carried, Int, Strided, check_batch, enqueue, ensure, fill, sizes};
use crate::blas::current_handle;
use crate::blas::scalar::Scalar;
use crate::blas::status::{Outcome, entry};
use crate::blas::view::{Fill, Target};

struct Arguments<T, I> {
    handle: rocblas_handle,
    uplo: rocblas_fill,
    /// `n`, `lda`, `batch_count`
    sizes: [I; 3],
    a: *mut T,
    stride: rocblas_stride,
    info: *mut I,
}

/// Runs `step` on every matrix and stores 0, or the index it failed with, in `info`. The returned
/// status never tells of such a failure: it is known only when the stream has come that far.
///
/// # Safety
/// `step` may be called on a triangle that is readable and writable. The C caller's duty: the
/// matrices and `info` are not touched by others until the stream has passed this call.
unsafe fn run<T: Scalar, I: Int>(
    name: &'static str,
    arguments: Arguments<T, I>,
    step: unsafe fn(Fill, usize, Target<T>) -> Result<(), usize>,
) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let fill = fill(arguments.uplo)?;
    let [n, lda, count] = sizes(arguments.sizes)?;
    ensure(lda >= n, rocblas_status::rocblas_status_invalid_size)?;
    let missing = (n != 0 && arguments.a.is_null()) || (count != 0 && arguments.info.is_null());
    ensure(!missing, rocblas_status::rocblas_status_invalid_pointer)?;
    if count == 0 {
        return Ok(());
    }
    let a = Strided {
        ptr: arguments.a,
        ld: lda,
        stride: arguments.stride,
    };
    let info = Info::new(name, arguments.info, count)?;
    check_batch(name, "A", a.as_const(), (n, n), count)?;
    ensure_apart(name, a, (n, n), count)?;
    let a = Carried(a);
    enqueue(&handle, name, move || {
        info.fill(|i| {
            // SAFETY: `n` x `n` elements with this leading dimension were checked to be device
            // memory; matrices of a batch do not overlap and nobody else touches them.
            unsafe { step(fill, n, a.get().target(i)) }
        });
    })
}

/// # Safety
/// As for [`cholesky::factor`].
unsafe fn factor<T: Scalar>(fill: Fill, n: usize, a: Target<T>) -> Result<(), usize> {
    // SAFETY: the caller's promise.
    unsafe { cholesky::factor(fill, n, a) }.map_err(|failed| failed.minor)
}

/// # Safety
/// As for [`cholesky::invert`].
unsafe fn invert<T: Scalar>(fill: Fill, n: usize, a: Target<T>) -> Result<(), usize> {
    // SAFETY: the caller's promise.
    unsafe { cholesky::invert(fill, n, a) }.map_err(|failed| failed.pivot)
}

/// The C functions for one element type (`$c` in C, `$rust` here) and one integer type.
macro_rules! entry_points {
    ($step:ident, $int:ty, $c:ty, $rust:ty: $name:ident, $strided:ident) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            uplo: rocblas_fill,
            n: $int,
            A: *mut $c,
            lda: $int,
            info: *mut $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                uplo,
                sizes: [n, lda, 1],
                a: A.cast(),
                stride: 0,
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                run(name, arguments, $step::<$rust>)
            })
        }

        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $strided(
            handle: rocblas_handle,
            uplo: rocblas_fill,
            n: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                uplo,
                sizes: [n, lda, batch_count],
                a: A.cast(),
                stride: strideA,
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($strided), |name| unsafe {
                run(name, arguments, $step::<$rust>)
            })
        }
    };
}

entry_points!(factor, rocblas_int, f32, f32: rocsolver_spotrf, rocsolver_spotrf_strided_batched);
entry_points!(factor, rocblas_int, f64, f64: rocsolver_dpotrf, rocsolver_dpotrf_strided_batched);
entry_points!(factor, rocblas_int, rocblas_float_complex, Complex<f32>:
    rocsolver_cpotrf, rocsolver_cpotrf_strided_batched);
entry_points!(factor, rocblas_int, rocblas_double_complex, Complex<f64>:
    rocsolver_zpotrf, rocsolver_zpotrf_strided_batched);
entry_points!(factor, i64, f32, f32: rocsolver_spotrf_64, rocsolver_spotrf_strided_batched_64);
entry_points!(factor, i64, f64, f64: rocsolver_dpotrf_64, rocsolver_dpotrf_strided_batched_64);
entry_points!(factor, i64, rocblas_float_complex, Complex<f32>:
    rocsolver_cpotrf_64, rocsolver_cpotrf_strided_batched_64);
entry_points!(factor, i64, rocblas_double_complex, Complex<f64>:
    rocsolver_zpotrf_64, rocsolver_zpotrf_strided_batched_64);
entry_points!(invert, rocblas_int, f32, f32: rocsolver_spotri, rocsolver_spotri_strided_batched);
entry_points!(invert, rocblas_int, f64, f64: rocsolver_dpotri, rocsolver_dpotri_strided_batched);
entry_points!(invert, rocblas_int, rocblas_float_complex, Complex<f32>:
    rocsolver_cpotri, rocsolver_cpotri_strided_batched);
entry_points!(invert, rocblas_int, rocblas_double_complex, Complex<f64>:
    rocsolver_zpotri, rocsolver_zpotri_strided_batched);
