//! The entry points `rocsolver_{s,d,c,z}getrs`, `..._batched`, `..._strided_batched` and their
//! `_64` forms: `op(A) X = B` with the factors of getrf, `X` in the place of `B`.
//!
//! Checks as in rocSOLVER's library/src/lapack/roclapack_getrs.hpp. A zero on the diagonal is not
//! checked for and yields infinities.

use rocblas_sys::{rocblas_handle, rocblas_operation, rocblas_status, rocblas_stride};

use super::lu;
use super::pivots::{Given, Pivots};
use crate::blas::aliasing::ensure_elements_apart;
use crate::blas::arguments::{Int, enqueue, ensure, operation, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::entry_points::for_all_types;
use crate::blas::scalar::Scalar;
use crate::blas::status::{Outcome, entry};
use crate::blas::view::Op;
use crate::blas::{current_handle, schedule};

struct Arguments<T, I> {
    handle: rocblas_handle,
    trans: rocblas_operation,
    /// `n`, `nrhs`, `lda`, `ldb`, `batch_count`
    sizes: [I; 5],
    a: Place<T>,
    ipiv: Given<I>,
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
    let missing = n != 0 && (a.is_null() || ipiv.ptr.is_null() || (nrhs != 0 && b.is_null()));
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

macro_rules! getrs {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            trans: rocblas_operation,
            n: $int,
            nrhs: $int,
            A: *mut $c,
            lda: $int,
            ipiv: *const $int,
            B: *mut $c,
            ldb: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans,
                sizes: [n, nrhs, lda, ldb, 1],
                a: Place::single(A.cast_const().cast()),
                ipiv: Given {
                    ptr: ipiv.cast_mut(),
                    stride: 0,
                },
                b: Place::single(B.cast_const().cast()),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrs(name, arguments) })
        }
    };
}
for_all_types!(getrs: rocsolver_sgetrs rocsolver_dgetrs rocsolver_cgetrs rocsolver_zgetrs;
    rocsolver_sgetrs_64 rocsolver_dgetrs_64 rocsolver_cgetrs_64 rocsolver_zgetrs_64);

macro_rules! batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            trans: rocblas_operation,
            n: $int,
            nrhs: $int,
            A: *const *mut $c,
            lda: $int,
            ipiv: *const $int,
            strideP: rocblas_stride,
            B: *const *mut $c,
            ldb: $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans,
                sizes: [n, nrhs, lda, ldb, batch_count],
                a: Place::Array(A.cast()),
                ipiv: Given {
                    ptr: ipiv.cast_mut(),
                    stride: strideP,
                },
                b: Place::Array(B.cast()),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrs(name, arguments) })
        }
    };
}
for_all_types!(batched:
    rocsolver_sgetrs_batched rocsolver_dgetrs_batched
    rocsolver_cgetrs_batched rocsolver_zgetrs_batched;
    rocsolver_sgetrs_batched_64 rocsolver_dgetrs_batched_64
    rocsolver_cgetrs_batched_64 rocsolver_zgetrs_batched_64);

macro_rules! strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            trans: rocblas_operation,
            n: $int,
            nrhs: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            ipiv: *const $int,
            strideP: rocblas_stride,
            B: *mut $c,
            ldb: $int,
            strideB: rocblas_stride,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                trans,
                sizes: [n, nrhs, lda, ldb, batch_count],
                a: Place::Strided(A.cast(), strideA),
                ipiv: Given {
                    ptr: ipiv.cast_mut(),
                    stride: strideP,
                },
                b: Place::Strided(B.cast(), strideB),
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrs(name, arguments) })
        }
    };
}
for_all_types!(strided:
    rocsolver_sgetrs_strided_batched rocsolver_dgetrs_strided_batched
    rocsolver_cgetrs_strided_batched rocsolver_zgetrs_strided_batched;
    rocsolver_sgetrs_strided_batched_64 rocsolver_dgetrs_strided_batched_64
    rocsolver_cgetrs_strided_batched_64 rocsolver_zgetrs_strided_batched_64);
