//! The entry points `rocsolver_{s,d,c,z}potrs` (also `_64`) and `..._posv`, each also `..._batched`
//! and `..._strided_batched`: `A X = B` for a positive definite `A`, `X` in the place of `B`.
//!
//! potrs takes the factor that potrf stored; posv factors `A` first, and if that fails `info` is
//! the order of the minor that is not positive definite and `B` is left as it was. Checks as in
//! rocSOLVER's library/src/lapack/roclapack_potrs.hpp and roclapack_posv.hpp.

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_status};

use super::cholesky;
use super::info::Info;
use crate::blas::aliasing::ensure_elements_apart;
use crate::blas::arguments::{Int, enqueue, ensure, fill, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::family::families;
use crate::blas::scalar::Scalar;
use crate::blas::status::Outcome;
use crate::blas::view::Op;
use crate::blas::{current_handle, schedule};

struct Arguments<T, I> {
    handle: rocblas_handle,
    uplo: rocblas_fill,
    /// `n`, `nrhs`, `lda`, `ldb`, `batch_count`
    sizes: [I; 5],
    a: Place<T>,
    b: Place<T>,
    /// None for the forms that take a factor.
    info: Option<*mut I>,
}

/// # Safety
/// The C caller's duty: the matrices and `info` are not touched by others until the stream has
/// passed this call.
unsafe fn run<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let fill = fill(arguments.uplo)?;
    let [n, nrhs, lda, ldb, count] = sizes(arguments.sizes)?;
    ensure(lda >= n && ldb >= n, rocblas_status::rocblas_status_invalid_size)?;
    let Arguments { a, b, info, .. } = arguments;
    let missing = n != 0 && (a.is_null() || (nrhs != 0 && b.is_null()));
    let no_info = count != 0 && info.is_some_and(|info| info.is_null());
    ensure(!missing && !no_info, rocblas_status::rocblas_status_invalid_pointer)?;
    if count == 0 {
        return Ok(());
    }
    let info = info.map(|info| Info::new(name, info, count)).transpose()?;
    if n == 0 || nrhs == 0 {
        return match info {
            Some(info) => enqueue(&handle, name, move || info.fill(|_| Ok(()))),
            None => Ok(()),
        };
    }
    let a = Batch {
        place: a,
        shape: (n, n),
        ld: lda,
        count,
    };
    let b = Batch {
        place: b,
        shape: (n, nrhs),
        ld: ldb,
        count,
    };
    if info.is_some() {
        a.check_result(name, "A")?;
    } else {
        a.check(name, "A")?;
    }
    b.check_result(name, "B")?;
    ensure_elements_apart(name, "A", &a, &b)?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe {
            if info.is_some() {
                a.check_result_in_stream(name, "A");
            } else {
                a.check_in_stream(name, "A");
            }
            b.check_result_in_stream(name, "B");
        }
        // SAFETY: everything was checked to be device memory, and results of a batch do not
        // overlap; the caller promises that nothing else touches them.
        let solve = |i| unsafe {
            cholesky::solve(fill, (n, nrhs), a.source(Op::None, i), b.target(i));
        };
        match info {
            None => schedule::for_each(count, usize::MAX, solve),
            Some(info) => info.fill(|i| {
                // SAFETY: as above.
                let outcome = unsafe { cholesky::factor(fill, n, a.target(i)) };
                outcome.map_err(|failed| failed.minor)?;
                solve(i);
                Ok(())
            }),
        }
    })
}

families! {
    /// potrs and posv.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [potrs] [plain batched strided_batched] [32 64]
        (uplo: rocblas_fill, n: I, nrhs: I, a: *mut operand(lda: I), b: *mut operand(ldb: I), batch_count: batch)
        => |name, handle| {
            let sizes = [n, nrhs, lda, ldb, batch_count];
            run(name, Arguments::<E, I> { handle, uplo, sizes, a, b, info: None })
        };
    rocsolver_ [s d c z] [posv] [plain batched strided_batched] [32]
        (uplo: rocblas_fill, n: I, nrhs: I, a: *mut operand(lda: I), b: *mut operand(ldb: I), info: *mut I,
         batch_count: batch)
        => |name, handle| {
            let (sizes, info) = ([n, nrhs, lda, ldb, batch_count], Some(info));
            run(name, Arguments::<E, I> { handle, uplo, sizes, a, b, info })
        };
}
