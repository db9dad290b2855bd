//! The entry points `rocsolver_{s,d,c,z}getrs`, `..._batched`, `..._strided_batched` and their
//! `_64` forms: `op(A) X = B` with the factors of getrf, `X` in the place of `B`.
//!
//! Checks as in rocSOLVER's library/src/lapack/roclapack_getrs.hpp. A zero on the diagonal is not
//! checked for and yields infinities.

use rocblas_sys::{rocblas_handle, rocblas_operation, rocblas_status};

use super::lu;
use super::pivots::Pivots;
use crate::blas::aliasing::ensure_elements_apart;
use crate::blas::arguments::{Int, enqueue, ensure, operation, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::family::families;
use crate::blas::scalar::Scalar;
use crate::blas::status::Outcome;
use crate::blas::view::Op;
use crate::blas::{current_handle, schedule};

struct Arguments<T, I> {
    handle: rocblas_handle,
    trans: rocblas_operation,
    /// `n`, `nrhs`, `lda`, `ldb`, `batch_count`
    sizes: [I; 5],
    a: Place<T>,
    ipiv: Place<I>,
    b: Place<T>,
}

/// # Safety
/// The C caller's duty: the matrices and `ipiv` are not touched by others until the stream has
/// passed this call.
unsafe fn getrs<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let op = operation(arguments.trans)?;
    let [n, nrhs, lda, ldb, count] = sizes(arguments.sizes)?;
    ensure(lda >= n && ldb >= n, rocblas_status::rocblas_status_invalid_size)?;
    let Arguments { a, ipiv, b, .. } = arguments;
    let missing = n != 0 && (a.is_null() || ipiv.is_null() || (nrhs != 0 && b.is_null()));
    ensure(!missing, rocblas_status::rocblas_status_invalid_pointer)?;
    if n == 0 || nrhs == 0 || count == 0 {
        return Ok(());
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
    a.check(name, "A")?;
    b.check_result(name, "B")?;
    ensure_elements_apart(name, "A", &a, &b)?;
    let pivots = Pivots::new(name, ipiv, n, count)?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe {
            a.check_in_stream(name, "A");
            b.check_result_in_stream(name, "B");
        }
        let pivots = pivots.read(name, n);
        schedule::for_each(count, usize::MAX, |i| {
            // SAFETY: everything was checked to be device memory, and results of a batch do not
            // overlap; the caller promises that nothing else touches them.
            unsafe {
                let a = a.source(Op::None, i);
                lu::solve(op, (n, nrhs), a, &pivots[i], b.target(i));
            }
        });
    })
}

families! {
    /// getrs.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [getrs] [plain batched strided_batched] [32 64]
        (trans: rocblas_operation, n: I, nrhs: I, a: *mut operand(lda: I), ipiv: *const pivots,
         b: *mut operand(ldb: I), batch_count: batch)
        => |name, handle| {
            let sizes = [n, nrhs, lda, ldb, batch_count];
            getrs(name, Arguments::<E, I> { handle, trans, sizes, a, ipiv, b })
        };
}
