//! The entry points `rocsolver_{s,d,c,z}getrf`, `..._npvt` (no exchange of rows), each also
//! `..._batched`, `..._strided_batched` and `_64`: `A = P L U` in place of `A`.
//!
//! `info` is 0, or the number of the first pivot that is zero; the factors are complete in both
//! cases. Checks as in rocSOLVER's library/src/lapack/roclapack_getrf.hpp.

use rocblas_sys::{rocblas_handle, rocblas_status};

use super::info::Info;
use super::lu;
use super::pivots::Pivots;
use crate::blas::arguments::{Int, enqueue, ensure, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::family::families;
use crate::blas::scalar::Scalar;
use crate::blas::status::Outcome;

struct Arguments<T, I> {
    handle: rocblas_handle,
    /// `m`, `n`, `lda`, `batch_count`
    sizes: [I; 4],
    a: Place<T>,
    /// None for the forms that do not exchange rows.
    ipiv: Option<Place<I>>,
    info: *mut I,
}

/// # Safety
/// The C caller's duty: the matrices, `ipiv` and `info` are not touched by others until the stream
/// has passed this call.
unsafe fn getrf<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let [m, n, lda, count] = sizes(arguments.sizes)?;
    ensure(lda >= m, rocblas_status::rocblas_status_invalid_size)?;
    let (place, given) = (arguments.a, arguments.ipiv);
    let missing = (m != 0 && n != 0) && (place.is_null() || given.is_some_and(Place::is_null));
    ensure(
        !missing && (count == 0 || !arguments.info.is_null()),
        rocblas_status::rocblas_status_invalid_pointer,
    )?;
    if count == 0 {
        return Ok(());
    }
    let a = Batch {
        place,
        shape: (m, n),
        ld: lda,
        count,
    };
    a.check_result(name, "A")?;
    let len = m.min(n);
    let pivots = given.map(|given| Pivots::of_result(name, given, len, count));
    let pivots = pivots.transpose()?;
    let info = Info::new(name, arguments.info, count)?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe { a.check_result_in_stream(name, "A") };
        info.fill(|i| {
            // SAFETY: everything was checked to be device memory, and results of a batch do not
            // overlap; the caller promises that nothing else touches them.
            let (rows, outcome) = unsafe { lu::factor((m, n), a.target(i), pivots.is_some()) };
            if let Some(pivots) = &pivots {
                pivots.write(i, &rows);
            }
            outcome.map_err(|singular| singular.pivot)
        });
    })
}

families! {
    /// getrf and getf2.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [getrf getf2] [plain batched strided_batched] [32 64]
        (m: I, n: I, a: *mut operand(lda: I), ipiv: *mut pivots, info: *mut I, batch_count: batch)
        => |name, handle| {
            let (sizes, ipiv) = ([m, n, lda, batch_count], Some(ipiv));
            getrf(name, Arguments::<E, I> { handle, sizes, a, ipiv, info })
        };
    rocsolver_ [s d c z] [getrf_npvt getf2_npvt] [plain batched strided_batched] [32 64]
        (m: I, n: I, a: *mut operand(lda: I), info: *mut I, batch_count: batch)
        => |name, handle| {
            let (sizes, ipiv) = ([m, n, lda, batch_count], None);
            getrf(name, Arguments::<E, I> { handle, sizes, a, ipiv, info })
        };
}
