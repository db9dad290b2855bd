//! The entry points `rocblas_{c,z}herk`, `rocblas_{s,d,c,z}syrk` and their `_64` forms.

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_operation, rocblas_status};

use super::aliasing::ensure_not_in_place;
use super::arguments::{Carried, Int, Strided, check_batch, enqueue, ensure, fill, operation, scalar, sizes};
use super::family::families;
use super::handle;
use super::rank_k::RankK;
use super::scalar::Scalar;
use super::status::Outcome;
use super::view::Op;

/// The arguments of all forms. `S` is the type of the scalars: the element's own, or its real part
/// for the hermitian forms.
struct Arguments<T, S, I> {
    handle: rocblas_handle,
    uplo: rocblas_fill,
    trans: rocblas_operation,
    /// `n`, `k`, `lda`, `ldc`
    sizes: [I; 4],
    alpha: *const S,
    a: *const T,
    beta: *const S,
    c: *mut T,
}

/// # Safety
/// The C caller's duties: `alpha` and `beta` are null or, in host pointer mode, readable; the
/// matrices are not touched by others until the stream has passed this call.
unsafe fn rank_k<T: Scalar, S: Copy + Send + 'static, I: Int>(
    name: &'static str,
    hermitian: bool,
    widen: fn(S) -> T,
    arguments: Arguments<T, S, I>,
) -> Outcome {
    let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
    let handle = handle::current(arguments.handle)?;
    let fill = fill(arguments.uplo)?;
    let op = operation(arguments.trans)?;
    // A complex matrix times its plain transpose is not hermitian, and times its adjoint is not
    // symmetric. For real ones they are the same.
    let meaningless = match op {
        Op::None => false,
        Op::Transpose => hermitian,
        Op::ConjTranspose => !hermitian && T::COMPLEX,
    };
    ensure(!meaningless, rocblas_status::rocblas_status_invalid_value)?;
    let [n, k, lda, ldc] = sizes(arguments.sizes)?;
    let shape = op.stored(n, k);
    ensure(ldc >= n && lda >= shape.0, rocblas_status::rocblas_status_invalid_size)?;
    if n == 0 {
        return Ok(());
    }
    ensure(
        (k == 0 || !arguments.alpha.is_null()) && !arguments.beta.is_null(),
        invalid_pointer,
    )?;
    // SAFETY: not null where they are read, and the caller's promise.
    let (alpha, beta) = unsafe {
        let alpha = match k {
            0 => T::ZERO,
            _ => widen(scalar(&handle, name, arguments.alpha)?),
        };
        (alpha, widen(scalar(&handle, name, arguments.beta)?))
    };
    let reads = alpha != T::ZERO;
    if !reads && beta == T::ONE {
        return Ok(());
    }
    ensure(
        !arguments.c.is_null() && (!reads || !arguments.a.is_null()),
        invalid_pointer,
    )?;
    let matrix = |ptr, ld| Strided { ptr, ld, stride: 0 };
    let a = matrix(arguments.a, lda);
    let c = Strided {
        ptr: arguments.c,
        ld: ldc,
        stride: 0,
    };
    if reads {
        check_batch(name, "A", a, shape, 1)?;
        ensure_not_in_place(name, "A", (a, shape), (c.as_const(), (n, n)), 1)?;
    }
    check_batch(name, "C", c.as_const(), (n, n), 1)?;
    let update = RankK {
        fill,
        n,
        k,
        alpha,
        beta,
        hermitian,
    };
    let matrices = Carried((a, c));
    enqueue(&handle, name, move || {
        let (a, c) = matrices.get();
        // SAFETY: the shapes are those that were checked, inside memory that the device can reach;
        // the caller promises that nothing else touches them.
        unsafe { update.run(a.source(op, 0), c.target(0)) };
    })
}

families! {
    /// herk and syrk.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [c z] [herk] [plain] [32 64]
        (uplo: rocblas_fill, trans: rocblas_operation, n: I, k: I, alpha: *const R, a: *const T, lda: I,
         beta: *const R, c: *mut T, ldc: I)
        => |name, handle| {
            let (a, c) = (a.cast(), c.cast());
            let arguments = Arguments { handle, uplo, trans, sizes: [n, k, lda, ldc], alpha, a, beta, c };
            rank_k(name, true, E::from_part, arguments)
        };
    rocblas_ [s d c z] [syrk] [plain] [32 64]
        (uplo: rocblas_fill, trans: rocblas_operation, n: I, k: I, alpha: *const T, a: *const T, lda: I,
         beta: *const T, c: *mut T, ldc: I)
        => |name, handle| {
            let (alpha, a, beta, c) = (alpha.cast(), a.cast(), beta.cast(), c.cast());
            let arguments = Arguments { handle, uplo, trans, sizes: [n, k, lda, ldc], alpha, a, beta, c };
            rank_k(name, false, |scalar: E| scalar, arguments)
        };
}
