//! The entry points `rocblas_{s,d,c,z}trsm`, `..._batched`, `..._strided_batched` and their `_64`
//! forms: `op(A) X = alpha B`, or `X op(A) = alpha B`, with `X` in the place of `B`.
//!
//! Checks as in rocBLAS' library/src/blas3/rocblas_trsm.hpp.

use rocblas_sys::{rocblas_diagonal, rocblas_fill, rocblas_handle, rocblas_operation, rocblas_side, rocblas_status};

use super::aliasing::ensure_not_in_place;
use super::arguments::{Int, diagonal, ensure, fill, operation, side, sizes};
use super::batch::{Batch, Place};
use super::family::families;
use super::handle;
use super::pointer_mode::with_scalars;
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
    /// `m`, `n`, `lda`, `ldb`, `batch_count`
    sizes: [I; 5],
    alpha: *const T,
    a: Place<T>,
    b: Place<T>,
}

/// # Safety
/// The C caller's duties: `alpha` is null or, in host pointer mode, readable; the matrices (and the
/// arrays that name them) are not touched by others until the stream has passed this call.
unsafe fn trsm<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let handle = handle::current(arguments.handle)?;
    let triangle = Triangle {
        side: side(arguments.side)?,
        fill: fill(arguments.uplo)?,
        op: operation(arguments.trans)?,
        unit: diagonal(arguments.diag)?,
    };
    let [m, n, lda, ldb, count] = sizes(arguments.sizes)?;
    let order = triangle.order((m, n)).0;
    ensure(lda >= order && ldb >= m, rocblas_status::rocblas_status_invalid_size)?;
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let a = Batch {
        place: arguments.a,
        shape: (order, order),
        ld: lda,
        count,
    };
    let b = Batch {
        place: arguments.b,
        shape: (m, n),
        ld: ldb,
        count,
    };
    ensure(!b.place.is_null(), rocblas_status::rocblas_status_invalid_pointer)?;
    let check = move |[alpha]: [T; 1]| {
        b.check_result(name, "B")?;
        if alpha != T::ZERO {
            a.check(name, "A")?;
            if let Some((operand, result)) = a.strided().zip(b.strided()) {
                ensure_not_in_place(name, "A", (operand, a.shape), (result, b.shape), count)?;
            }
        }
        Ok(true)
    };
    let work = move |[alpha]: [T; 1]| {
        // SAFETY: `check` looked at all that is touched here, and `..._in_stream` at the rest; the
        // caller promises that nothing else touches it.
        unsafe {
            b.check_result_in_stream(name, "B");
            if alpha != T::ZERO {
                a.check_in_stream(name, "A");
            }
            for i in 0..count {
                if alpha == T::ZERO {
                    b.target(i).scale(alpha, n, |_| 0..m);
                } else {
                    triangle.solve(alpha, a.source(Op::None, i), b.target(i), b.shape);
                }
            }
        }
    };
    // SAFETY: the caller's promise for `alpha`.
    unsafe { with_scalars(&handle, name, [arguments.alpha], check, work) }
}

families! {
    /// trsm.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d c z] [trsm] [plain batched strided_batched] [32 64]
        (side: rocblas_side, uplo: rocblas_fill, trans: rocblas_operation, diag: rocblas_diagonal, m: I, n: I,
         alpha: *const T, a: *const operand(lda: I), b: *mut operand(ldb: I), batch_count: batch)
        => |name, handle| {
            let (sizes, alpha) = ([m, n, lda, ldb, batch_count], alpha.cast());
            trsm(name, Arguments { handle, side, uplo, trans, diag, sizes, alpha, a, b })
        };
}
