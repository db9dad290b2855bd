//! The entry points `rocsolver_{s,d,c,z}potrf` and `..._potf2` (also `_64`) and `..._potri`, each also `..._batched`
//! and `..._strided_batched`. potf2 is potrf without blocks there; here they are one.

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_status, rocblas_stride};

use super::cholesky;
use super::info::Info;
use crate::blas::arguments::{Int, enqueue, ensure, fill, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::entry_points::{for_all_types, for_element_types};
use crate::blas::scalar::Scalar;
use crate::blas::status::{Outcome, entry};
use crate::blas::view::{Fill, Target};

struct Arguments<T, I> {
    handle: rocblas_handle,
    uplo: rocblas_fill,
    /// `n`, `lda`, `batch_count`
    sizes: [I; 3],
    a: Place<T>,
    info: *mut I,
}

/// Runs `step` on every matrix and stores 0, or the index it failed with, in `info`. The returned status never reports
/// such a failure: it is known only when the stream has come that far.
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
    let a = Batch {
        place: arguments.a,
        shape: (n, n),
        ld: lda,
        count,
    };
    let info = Info::new(name, arguments.info, count)?;
    a.check_result(name, "A")?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe { a.check_result_in_stream(name, "A") };
        info.fill(|i| {
            // SAFETY: `n` x `n` elements with this leading dimension were checked to be device
            // memory; matrices of a batch do not overlap and nothing else touches them.
            unsafe { step(fill, n, a.target(i)) }
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

macro_rules! plain {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $step:ident) => {
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
                a: Place::single(A.cast_const().cast()),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                run(name, arguments, $step::<$rust>)
            })
        }
    };
}
macro_rules! potrf {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        plain!($name, $int, $c, $rust, factor);
    };
}
macro_rules! potri {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        plain!($name, $int, $c, $rust, invert);
    };
}
for_all_types!(potrf: rocsolver_spotrf rocsolver_dpotrf rocsolver_cpotrf rocsolver_zpotrf;
    rocsolver_spotrf_64 rocsolver_dpotrf_64 rocsolver_cpotrf_64 rocsolver_zpotrf_64);
for_all_types!(potrf: rocsolver_spotf2 rocsolver_dpotf2 rocsolver_cpotf2 rocsolver_zpotf2;
    rocsolver_spotf2_64 rocsolver_dpotf2_64 rocsolver_cpotf2_64 rocsolver_zpotf2_64);
for_element_types!(potri: rocsolver_spotri rocsolver_dpotri rocsolver_cpotri rocsolver_zpotri);

macro_rules! batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $step:ident) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            uplo: rocblas_fill,
            n: $int,
            A: *const *mut $c,
            lda: $int,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                uplo,
                sizes: [n, lda, batch_count],
                a: Place::Array(A.cast()),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                run(name, arguments, $step::<$rust>)
            })
        }
    };
}
macro_rules! potrf_batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        batched!($name, $int, $c, $rust, factor);
    };
}
macro_rules! potri_batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        batched!($name, $int, $c, $rust, invert);
    };
}
for_all_types!(potrf_batched:
    rocsolver_spotrf_batched rocsolver_dpotrf_batched
    rocsolver_cpotrf_batched rocsolver_zpotrf_batched;
    rocsolver_spotrf_batched_64 rocsolver_dpotrf_batched_64
    rocsolver_cpotrf_batched_64 rocsolver_zpotrf_batched_64);
for_all_types!(potrf_batched:
    rocsolver_spotf2_batched rocsolver_dpotf2_batched
    rocsolver_cpotf2_batched rocsolver_zpotf2_batched;
    rocsolver_spotf2_batched_64 rocsolver_dpotf2_batched_64
    rocsolver_cpotf2_batched_64 rocsolver_zpotf2_batched_64);
for_element_types!(potri_batched:
    rocsolver_spotri_batched rocsolver_dpotri_batched
    rocsolver_cpotri_batched rocsolver_zpotri_batched);

macro_rules! strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty, $step:ident) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
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
                a: Place::Strided(A.cast(), strideA),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                run(name, arguments, $step::<$rust>)
            })
        }
    };
}
macro_rules! potrf_strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        strided!($name, $int, $c, $rust, factor);
    };
}
macro_rules! potri_strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        strided!($name, $int, $c, $rust, invert);
    };
}
for_all_types!(potrf_strided:
    rocsolver_spotrf_strided_batched rocsolver_dpotrf_strided_batched
    rocsolver_cpotrf_strided_batched rocsolver_zpotrf_strided_batched;
    rocsolver_spotrf_strided_batched_64 rocsolver_dpotrf_strided_batched_64
    rocsolver_cpotrf_strided_batched_64 rocsolver_zpotrf_strided_batched_64);
for_all_types!(potrf_strided:
    rocsolver_spotf2_strided_batched rocsolver_dpotf2_strided_batched
    rocsolver_cpotf2_strided_batched rocsolver_zpotf2_strided_batched;
    rocsolver_spotf2_strided_batched_64 rocsolver_dpotf2_strided_batched_64
    rocsolver_cpotf2_strided_batched_64 rocsolver_zpotf2_strided_batched_64);
for_element_types!(potri_strided:
    rocsolver_spotri_strided_batched rocsolver_dpotri_strided_batched
    rocsolver_cpotri_strided_batched rocsolver_zpotri_strided_batched);
