//! The entry points `rocblas_{s,d,c,z}trmm`, `..._batched`, `..._strided_batched` and their `_64`
//! forms: `C := alpha op(A) B`, or `alpha B op(A)`. `C` may be `B` itself, as in BLAS' own form.
//!
//! Checks as in rocBLAS' library/src/blas3/rocblas_trmm.hpp. `alpha` in device memory is fetched before them, as there
//! (`rocblas_trmm_imp.hpp`): such a call waits for its stream.

use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_handle, rocblas_operation, rocblas_side, rocblas_status};

use super::aliasing::ensure_not_in_place;
use super::arguments::{Int, diagonal, enqueue, ensure, fill, operation, scalar, side, sizes};
use super::batch::{Batch, Place};
use super::family::families;
use super::handle;
use super::scalar::Scalar;
use super::status::Outcome;
use super::triangular::Triangle;
use super::view::Op;

struct Arguments<T, I> {
    handle: rocblas_handle,
    side: rocblas_side,
    uplo: rocblas_fill,
    trans: rocblas_operation,
    diag: rocblas_diagonal,
    /// `m`, `n`, `lda`, `ldb`, `ldc`, `batch_count`
    sizes: [I; 6],
    alpha: *const T,
    a: Place<T>,
    b: Place<T>,
    c: Place<T>,
}

/// # Safety
/// The C caller's duties: `alpha` is null or, in host pointer mode, readable; the matrices (and the
/// arrays that name them) are not touched by others until the stream has passed this call.
unsafe fn trmm<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let handle = handle::current(arguments.handle)?;
    let triangle = Triangle {
        side: side(arguments.side)?,
        fill: fill(arguments.uplo)?,
        op: operation(arguments.trans)?,
        unit: diagonal(arguments.diag)?,
    };
    let [m, n, lda, ldb, ldc, count] = sizes(arguments.sizes)?;
    let order = triangle.order((m, n)).0;
    ensure(
        ldc >= m && ldb >= m && lda >= order,
        rocblas_status::rocblas_status_invalid_size,
    )?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let batch = |place, shape, ld| Batch {
        place,
        shape,
        ld,
        count,
    };
    let a = batch(arguments.a, (order, order), lda);
    let b = batch(arguments.b, (m, n), ldb);
    let c = batch(arguments.c, (m, n), ldc);
    ensure(
        !c.place.is_null() && !arguments.alpha.is_null(),
        rocblas_status::rocblas_status_invalid_pointer,
    )?;
    // SAFETY: not null; readable in host mode by the caller's promise.
    let alpha = unsafe { scalar(&handle, name, arguments.alpha)? };
    if alpha != T::ZERO {
        a.check(name, "A")?;
        b.check(name, "B")?;
    }
    ensure(
        !b.place.is(c.place) || ldb == ldc,
        rocblas_status::rocblas_status_invalid_value,
    )?;
    c.check_result(name, "C")?;
    if let (Some(result), true) = (c.strided(), alpha != T::ZERO) {
        for (argument, operand) in [("A", a), ("B", b)] {
            let in_place = argument == "B" && operand.place.is(c.place);
            if let (Some(strided), false) = (operand.strided(), in_place) {
                let operand = (strided, operand.shape);
                ensure_not_in_place(name, argument, operand, (result, c.shape), count)?;
            }
        }
    }
    enqueue(&handle, name, move || {
        // SAFETY: all that is touched here was checked, or is by `..._in_stream`; the caller promises that nothing else
        // touches it.
        unsafe {
            c.check_result_in_stream(name, "C");
            if alpha != T::ZERO {
                a.check_in_stream(name, "A");
                b.check_in_stream(name, "B");
            }
            for i in 0..count {
                let c = c.target(i);
                if alpha == T::ZERO {
                    c.scale(alpha, n, |_| 0..m);
                } else {
                    let (a, b) = (a.source(Op::None, i), b.source(Op::None, i));
                    triangle.multiply(alpha, a, b, c, (m, n));
                }
            }
        }
    })
}

families! {
    /// trmm.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d c z] [trmm] [plain batched strided_batched] [32 64]
        (side: rocblas_side, uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, m: I, n: I,
         alpha: *const T, a: *const operand(lda: I), b: *const operand(ldb: I), c: *mut operand(ldc: I),
         batch_count: batch)
        => |name, handle| {
            let (sizes, alpha) = ([m, n, lda, ldb, ldc, batch_count], alpha.cast());
            trmm(name, Arguments { handle, side, uplo, trans, diag, sizes, alpha, a, b, c })
        };
}
