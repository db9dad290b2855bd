//! The entry points `rocsolver_{s,d,c,z}gesv`, `..._batched` and `..._strided_batched`: `A X = B`
//! with the factors of `A` in its place and `X` in the place of `B`.
//!
//! `info` is 0, or the number of the first pivot that is zero; `B` is left as it was then. Without
//! right-hand sides nothing is factored. Checks as in rocSOLVER's
//! library/src/lapack/roclapack_gesv.hpp.

use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_status};

use super::info::Info;
use super::lu;
use super::pivots::Pivots;
use crate::blas::aliasing::ensure_elements_apart;
use crate::blas::arguments::{enqueue, ensure, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::family::families;
use crate::blas::scalar::Scalar;
use crate::blas::status::Outcome;
use crate::blas::view::Op;

struct Arguments<T> {
    handle: rocblas_handle,
    /// `n`, `nrhs`, `lda`, `ldb`, `batch_count`
    sizes: [rocblas_int; 5],
    a: Place<T>,
    ipiv: Place<rocblas_int>,
    b: Place<T>,
    info: *mut rocblas_int,
}

/// # Safety
/// The C caller's duty: the matrices, `ipiv` and `info` are not touched by others until the stream
/// has passed this call.
unsafe fn gesv<T: Scalar>(name: &'static str, arguments: Arguments<T>) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let [n, nrhs, lda, ldb, count] = sizes(arguments.sizes)?;
    ensure(lda >= n && ldb >= n, rocblas_status::rocblas_status_invalid_size)?;
    let Arguments { a, ipiv, b, .. } = arguments;
    let missing = n != 0 && (a.is_null() || ipiv.is_null() || (nrhs != 0 && b.is_null()));
    ensure(
        !missing && (count == 0 || !arguments.info.is_null()),
        rocblas_status::rocblas_status_invalid_pointer,
    )?;
    if count == 0 {
        return Ok(());
    }
    let info = Info::new(name, arguments.info, count)?;
    if n == 0 || nrhs == 0 {
        return enqueue(&handle, name, move || info.fill(|_| Ok(())));
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
    a.check_result(name, "A")?;
    b.check_result(name, "B")?;
    ensure_elements_apart(name, "A", &a, &b)?;
    let pivots = Pivots::of_result(name, ipiv, n, count)?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe {
            a.check_result_in_stream(name, "A");
            b.check_result_in_stream(name, "B");
        }
        info.fill(|i| {
            // SAFETY: everything was checked to be device memory, and results of a batch do not
            // overlap; the caller promises that nothing else touches them.
            unsafe {
                let (rows, outcome) = lu::factor((n, n), a.target(i), true);
                pivots.write(i, &rows);
                outcome.map_err(|singular| singular.pivot)?;
                let factors = a.source(Op::None, i);
                lu::solve(Op::None, (n, nrhs), factors, &rows, b.target(i));
            }
            Ok(())
        });
    })
}

families! {
    /// gesv.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [gesv] [plain batched strided_batched] [32]
        (n: I, nrhs: I, a: *mut operand(lda: I), ipiv: *mut pivots, b: *mut operand(ldb: I), info: *mut I,
         batch_count: batch)
        => |name, handle| {
            let sizes = [n, nrhs, lda, ldb, batch_count];
            gesv(name, Arguments::<E> { handle, sizes, a, ipiv, b, info })
        };
}
