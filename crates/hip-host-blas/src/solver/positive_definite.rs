//! The entry points `rocsolver_{s,d,c,z}potrf` and `..._potf2` (also `_64`) and `..._potri`, each also `..._batched`
//! and `..._strided_batched`. potf2 is potrf without blocks there; here they are one.

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_status};

use super::cholesky;
use super::info::Info;
use crate::blas::arguments::{Int, enqueue, ensure, fill, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::family::families;
use crate::blas::scalar::Scalar;
use crate::blas::status::Outcome;
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

families! {
    /// potrf, potf2 and potri.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [potrf potf2] [plain batched strided_batched] [32 64]
        (uplo: rocblas_fill, n: I, a: *mut operand(lda: I), info: *mut I, batch_count: batch)
        => |name, handle| {
            let sizes = [n, lda, batch_count];
            run(name, Arguments::<E, I> { handle, uplo, sizes, a, info }, factor)
        };
    rocsolver_ [s d c z] [potri] [plain batched strided_batched] [32]
        (uplo: rocblas_fill, n: I, a: *mut operand(lda: I), info: *mut I, batch_count: batch)
        => |name, handle| {
            let sizes = [n, lda, batch_count];
            run(name, Arguments::<E, I> { handle, uplo, sizes, a, info }, invert)
        };
}
