//! The entry points `rocblas_{c,z}herk`, `rocblas_{s,d,c,z}syrk` and their `_64` forms.

use num_complex::Complex;
use rocblas_sys::{
    rocblas_double_complex, rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_int, rocblas_operation,
    rocblas_status,
};

use super::aliasing::ensure_not_in_place;
use super::arguments::{Carried, Int, Strided, check_batch, enqueue, ensure, fill, operation, scalar, sizes};
use super::handle;
use super::rank_k::RankK;
use super::scalar::Scalar;
use super::status::{Outcome, entry};
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

/// A C function for one element type (`$c` in C, `$rust` here), the C type of its scalars and one
/// integer type.
macro_rules! entry_point {
    ($name:ident($int:ty, $c:ty, $rust:ty, $scalar:ty, $scalar_rust:ty), $hermitian:literal, $widen:expr) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            uplo: rocblas_fill,
            transA: rocblas_operation,
            n: $int,
            k: $int,
            alpha: *const $scalar,
            A: *const $c,
            lda: $int,
            beta: *const $scalar,
            C: *mut $c,
            ldc: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $scalar_rust, $int> {
                handle,
                uplo,
                trans: transA,
                sizes: [n, k, lda, ldc],
                alpha: alpha.cast(),
                a: A.cast(),
                beta: beta.cast(),
                c: C.cast(),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe {
                rank_k(name, $hermitian, $widen, arguments)
            })
        }
    };
}

macro_rules! hermitian {
    ($int:ty, $c:ty, $rust:ty, $real:ty: $name:ident) => {
        entry_point!($name($int, $c, $rust, $real, $real), true, <$rust>::from_part);
    };
}
macro_rules! symmetric {
    ($int:ty, $c:ty, $rust:ty: $name:ident) => {
        entry_point!($name($int, $c, $rust, $c, $rust), false, |scalar| scalar);
    };
}

hermitian!(rocblas_int, rocblas_float_complex, Complex<f32>, f32: rocblas_cherk);
hermitian!(rocblas_int, rocblas_double_complex, Complex<f64>, f64: rocblas_zherk);
hermitian!(i64, rocblas_float_complex, Complex<f32>, f32: rocblas_cherk_64);
hermitian!(i64, rocblas_double_complex, Complex<f64>, f64: rocblas_zherk_64);
symmetric!(rocblas_int, f32, f32: rocblas_ssyrk);
symmetric!(rocblas_int, f64, f64: rocblas_dsyrk);
symmetric!(rocblas_int, rocblas_float_complex, Complex<f32>: rocblas_csyrk);
symmetric!(rocblas_int, rocblas_double_complex, Complex<f64>: rocblas_zsyrk);
symmetric!(i64, f32, f32: rocblas_ssyrk_64);
symmetric!(i64, f64, f64: rocblas_dsyrk_64);
symmetric!(i64, rocblas_float_complex, Complex<f32>: rocblas_csyrk_64);
symmetric!(i64, rocblas_double_complex, Complex<f64>: rocblas_zsyrk_64);
