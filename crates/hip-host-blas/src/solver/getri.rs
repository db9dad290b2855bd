//! The entry points `rocsolver_{s,d,c,z}getri` and `..._getri_outofplace`, each also `..._batched`
//! and `..._strided_batched`: the inverse of a matrix from the factors of getrf.
//!
//! `info` is 0, or the number of the first pivot that is zero; the inverse is not stored then
//! (rocSOLVER leaves the result undefined). Checks as in rocSOLVER's
//! library/src/lapack/roclapack_getri.hpp and roclapack_getri_outofplace.hpp.

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
    n: rocblas_int,
    a: (Place<T>, rocblas_int),
    ipiv: Place<rocblas_int>,
    /// None for the forms that store the inverse in the place of the factors.
    c: Option<(Place<T>, rocblas_int)>,
    info: *mut rocblas_int,
    batch_count: rocblas_int,
}

/// # Safety
/// The C caller's duty: the matrices, `ipiv` and `info` are not touched by others until the stream
/// has passed this call.
unsafe fn getri<T: Scalar>(name: &'static str, arguments: Arguments<T>) -> Outcome {
    let handle = current_handle(arguments.handle)?;
    let Arguments { a, ipiv, c, .. } = arguments;
    let to = c.unwrap_or(a);
    let [n, lda, ldc, count] = sizes([arguments.n, a.1, to.1, arguments.batch_count])?;
    ensure(lda >= n && ldc >= n, rocblas_status::rocblas_status_invalid_size)?;
    let missing = n != 0 && (a.0.is_null() || to.0.is_null() || ipiv.is_null());
    ensure(
        !missing && (count == 0 || !arguments.info.is_null()),
        rocblas_status::rocblas_status_invalid_pointer,
    )?;
    if count == 0 {
        return Ok(());
    }
    let batch = |place, ld| Batch {
        place,
        shape: (n, n),
        ld,
        count,
    };
    let (a, to) = (batch(a.0, lda), batch(to.0, ldc));
    if c.is_some() {
        a.check(name, "A")?;
        ensure_elements_apart(name, "A", &a, &to)?;
    }
    to.check_result(name, if c.is_some() { "C" } else { "A" })?;
    let pivots = Pivots::new(name, ipiv, n, count)?;
    let info = Info::new(name, arguments.info, count)?;
    enqueue(&handle, name, move || {
        // SAFETY: checked just now.
        unsafe {
            a.check_in_stream(name, "A");
            to.check_result_in_stream(name, "the inverse");
        }
        let pivots = pivots.read(name, n);
        info.fill(|i| {
            // SAFETY: everything was checked to be device memory, and results of a batch do not
            // overlap; the caller promises that nothing else touches them.
            let outcome = unsafe { lu::invert(n, a.source(Op::None, i), &pivots[i], to.target(i)) };
            outcome.map_err(|singular| singular.pivot)
        });
    })
}

families! {
    /// getri.
    pub(super) fn slots(rocsolver_sys::Api);

    rocsolver_ [s d c z] [getri] [plain batched strided_batched] [32]
        (n: I, a: *mut operand(lda: I), ipiv: *mut pivots, info: *mut I, batch_count: batch)
        => |name, handle| {
            getri(name, Arguments::<E> { handle, n, a: (a, lda), ipiv, c: None, info, batch_count })
        };
    rocsolver_ [s d c z] [getri_outofplace] [plain batched strided_batched] [32]
        (n: I, a: *mut operand(lda: I), ipiv: *mut pivots, c: *mut operand(ldc: I), info: *mut I, batch_count: batch)
        => |name, handle| {
            getri(name, Arguments::<E> { handle, n, a: (a, lda), ipiv, c: Some((c, ldc)), info, batch_count })
        };
}
