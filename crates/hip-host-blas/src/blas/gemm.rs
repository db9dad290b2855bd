//! The entry points `rocblas_{s,d,c,z}gemm`, `..._strided_batched`, `..._batched` and their `_64`
//! forms.

use rocblas_sys::{rocblas_handle, rocblas_operation, rocblas_status};

use super::aliasing::ensure_not_in_place;
use super::arguments::{Int, enqueue, ensure, operation, scalar, sizes};
use super::batch::{Batch, Place};
use super::family::families;
use super::handle;
use super::product::{Operands, Product};
use super::scalar::Scalar;
use super::status::Outcome;
use super::view::Source;

struct Arguments<T, I> {
    handle: rocblas_handle,
    trans: [rocblas_operation; 2],
    /// `m`, `n`, `k`, `lda`, `ldb`, `ldc`, `batch_count`
    sizes: [I; 7],
    alpha: *const T,
    a: Place<T>,
    b: Place<T>,
    beta: *const T,
    c: Place<T>,
}

/// rocBLAS' checks, in its order.
///
/// # Safety
/// The C caller's duties: `alpha` and `beta` are null or, in host pointer mode, readable; the
/// matrices (and the arrays that name them) are not touched by others until the stream has passed
/// this call.
unsafe fn gemm<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
    let handle = handle::current(arguments.handle)?;
    let ops = [operation(arguments.trans[0])?, operation(arguments.trans[1])?];
    let [m, n, k, lda, ldb, ldc, count] = sizes(arguments.sizes)?;
    let enough = lda >= ops[0].stored(m, k).0 && ldb >= ops[1].stored(k, n).0 && ldc >= m;
    ensure(enough, rocblas_status::rocblas_status_invalid_size)?;
    // k == 0 is not among the quick returns: C must still be multiplied by beta.
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    ensure(!arguments.beta.is_null(), invalid_pointer)?;
    // SAFETY: not null, and the caller's promise.
    let beta = unsafe { scalar(&handle, name, arguments.beta)? };
    let alpha = if k == 0 {
        T::ZERO
    } else {
        ensure(!arguments.alpha.is_null(), invalid_pointer)?;
        // SAFETY: as above.
        unsafe { scalar(&handle, name, arguments.alpha)? }
    };
    let product = Product { m, n, k, alpha, beta };
    let reads = product.reads_operands();
    if beta == T::ONE && !reads {
        return Ok(());
    }
    let batch = |place, shape, ld| Batch {
        place,
        shape,
        ld,
        count,
    };
    let a = batch(arguments.a, ops[0].stored(m, k), lda);
    let b = batch(arguments.b, ops[1].stored(k, n), ldb);
    let c = batch(arguments.c, (m, n), ldc);
    let missing = reads && (a.place.is_null() || b.place.is_null());
    ensure(!c.place.is_null() && !missing, invalid_pointer)?;
    if reads {
        for (argument, operand) in [("A", a), ("B", b)] {
            operand.check(name, argument)?;
        }
        for (argument, operand) in [("A", a), ("B", b)] {
            if let Some((strided, result)) = operand.strided().zip(c.strided()) {
                ensure_not_in_place(name, argument, (strided, operand.shape), (result, c.shape), count)?;
            }
        }
    }
    c.check_result(name, "C")?;
    enqueue(&handle, name, move || {
        // SAFETY: the shapes are those that were checked, inside memory that the device can reach, or are by
        // `..._in_stream`; the caller promises that nothing else touches them, and results of one batch do not overlap.
        // Operands that are not read may be anywhere.
        unsafe {
            if reads {
                a.check_in_stream(name, "A");
                b.check_in_stream(name, "B");
            }
            c.check_in_stream(name, "C");
            let operand = |batch: &Batch<T>, op, i| {
                let nowhere = Source {
                    ptr: std::ptr::null(),
                    ld: batch.ld,
                    op,
                };
                if reads { batch.source(op, i) } else { nowhere }
            };
            product.run(count, |i| Operands {
                a: operand(&a, ops[0], i),
                b: operand(&b, ops[1], i),
                c: c.target(i),
            });
        }
    })
}

families! {
    /// gemm.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d c z] [gemm] [plain batched strided_batched] [32 64]
        (trans_a: rocblas_operation, trans_b: rocblas_operation, m: I, n: I, k: I, alpha: *const T,
         a: *const operand(lda: I), b: *const operand(ldb: I), beta: *const T, c: *mut operand(ldc: I),
         batch_count: batch)
        => |name, handle| {
            let (trans, sizes) = ([trans_a, trans_b], [m, n, k, lda, ldb, ldc, batch_count]);
            let (alpha, beta) = (alpha.cast(), beta.cast());
            gemm(name, Arguments { handle, trans, sizes, alpha, a, b, beta, c })
        };
}
