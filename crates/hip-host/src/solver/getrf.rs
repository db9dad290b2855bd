//! The entry points `rocsolver_{s,d,c,z}getrf`, `..._npvt` (no exchange of rows), each also
//! `..._batched`, `..._strided_batched` and `_64`: `A = P L U` in place of `A`.
//!
//! `info` is 0, or the number of the first pivot that is zero; the factors are complete in both
//! cases. Checks as in rocSOLVER's library/src/lapack/roclapack_getrf.hpp.

use rocblas_sys::{rocblas_handle, rocblas_status, rocblas_stride};

use super::info::Info;
use super::lu;
use super::pivots::{Given, Pivots};
use crate::blas::arguments::{Int, enqueue, ensure, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::entry_points::for_all_types;
use crate::blas::scalar::Scalar;
use crate::blas::status::{Outcome, entry};

struct Arguments<T, I> {
    handle: rocblas_handle,
    /// `m`, `n`, `lda`, `batch_count`
    sizes: [I; 4],
    a: Place<T>,
    /// None for the forms that do not exchange rows.
    ipiv: Option<Given<I>>,
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
    let missing = (m != 0 && n != 0) && (place.is_null() || given.is_some_and(|given| given.ptr.is_null()));
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

/// The three forms with `ipiv` for one element type and one integer type.
macro_rules! getrf {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *mut $c,
            lda: $int,
            ipiv: *mut $int,
            info: *mut $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, 1],
                a: Place::single(A.cast_const().cast()),
                ipiv: Some(Given { ptr: ipiv, stride: 0 }),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(getrf: rocsolver_sgetrf rocsolver_dgetrf rocsolver_cgetrf rocsolver_zgetrf;
    rocsolver_sgetrf_64 rocsolver_dgetrf_64 rocsolver_cgetrf_64 rocsolver_zgetrf_64);
for_all_types!(getrf: rocsolver_sgetf2 rocsolver_dgetf2 rocsolver_cgetf2 rocsolver_zgetf2;
    rocsolver_sgetf2_64 rocsolver_dgetf2_64 rocsolver_cgetf2_64 rocsolver_zgetf2_64);

macro_rules! batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *const *mut $c,
            lda: $int,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, batch_count],
                a: Place::Array(A.cast()),
                ipiv: Some(Given {
                    ptr: ipiv,
                    stride: strideP,
                }),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(batched:
    rocsolver_sgetrf_batched rocsolver_dgetrf_batched
    rocsolver_cgetrf_batched rocsolver_zgetrf_batched;
    rocsolver_sgetrf_batched_64 rocsolver_dgetrf_batched_64
    rocsolver_cgetrf_batched_64 rocsolver_zgetrf_batched_64);
for_all_types!(batched:
    rocsolver_sgetf2_batched rocsolver_dgetf2_batched
    rocsolver_cgetf2_batched rocsolver_zgetf2_batched;
    rocsolver_sgetf2_batched_64 rocsolver_dgetf2_batched_64
    rocsolver_cgetf2_batched_64 rocsolver_zgetf2_batched_64);

macro_rules! strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, batch_count],
                a: Place::Strided(A.cast(), strideA),
                ipiv: Some(Given {
                    ptr: ipiv,
                    stride: strideP,
                }),
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(strided:
    rocsolver_sgetrf_strided_batched rocsolver_dgetrf_strided_batched
    rocsolver_cgetrf_strided_batched rocsolver_zgetrf_strided_batched;
    rocsolver_sgetrf_strided_batched_64 rocsolver_dgetrf_strided_batched_64
    rocsolver_cgetrf_strided_batched_64 rocsolver_zgetrf_strided_batched_64);
for_all_types!(strided:
    rocsolver_sgetf2_strided_batched rocsolver_dgetf2_strided_batched
    rocsolver_cgetf2_strided_batched rocsolver_zgetf2_strided_batched;
    rocsolver_sgetf2_strided_batched_64 rocsolver_dgetf2_strided_batched_64
    rocsolver_cgetf2_strided_batched_64 rocsolver_zgetf2_strided_batched_64);

macro_rules! npvt {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *mut $c,
            lda: $int,
            info: *mut $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, 1],
                a: Place::single(A.cast_const().cast()),
                ipiv: None,
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(npvt:
    rocsolver_sgetrf_npvt rocsolver_dgetrf_npvt rocsolver_cgetrf_npvt rocsolver_zgetrf_npvt;
    rocsolver_sgetrf_npvt_64 rocsolver_dgetrf_npvt_64
    rocsolver_cgetrf_npvt_64 rocsolver_zgetrf_npvt_64);
for_all_types!(npvt:
    rocsolver_sgetf2_npvt rocsolver_dgetf2_npvt rocsolver_cgetf2_npvt rocsolver_zgetf2_npvt;
    rocsolver_sgetf2_npvt_64 rocsolver_dgetf2_npvt_64
    rocsolver_cgetf2_npvt_64 rocsolver_zgetf2_npvt_64);

macro_rules! npvt_batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *const *mut $c,
            lda: $int,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, batch_count],
                a: Place::Array(A.cast()),
                ipiv: None,
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(npvt_batched:
    rocsolver_sgetrf_npvt_batched rocsolver_dgetrf_npvt_batched
    rocsolver_cgetrf_npvt_batched rocsolver_zgetrf_npvt_batched;
    rocsolver_sgetrf_npvt_batched_64 rocsolver_dgetrf_npvt_batched_64
    rocsolver_cgetrf_npvt_batched_64 rocsolver_zgetrf_npvt_batched_64);
for_all_types!(npvt_batched:
    rocsolver_sgetf2_npvt_batched rocsolver_dgetf2_npvt_batched
    rocsolver_cgetf2_npvt_batched rocsolver_zgetf2_npvt_batched;
    rocsolver_sgetf2_npvt_batched_64 rocsolver_dgetf2_npvt_batched_64
    rocsolver_cgetf2_npvt_batched_64 rocsolver_zgetf2_npvt_batched_64);

macro_rules! npvt_strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            m: $int,
            n: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust, $int> {
                handle,
                sizes: [m, n, lda, batch_count],
                a: Place::Strided(A.cast(), strideA),
                ipiv: None,
                info,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getrf(name, arguments) })
        }
    };
}
for_all_types!(npvt_strided:
    rocsolver_sgetrf_npvt_strided_batched rocsolver_dgetrf_npvt_strided_batched
    rocsolver_cgetrf_npvt_strided_batched rocsolver_zgetrf_npvt_strided_batched;
    rocsolver_sgetrf_npvt_strided_batched_64 rocsolver_dgetrf_npvt_strided_batched_64
    rocsolver_cgetrf_npvt_strided_batched_64 rocsolver_zgetrf_npvt_strided_batched_64);
for_all_types!(npvt_strided:
    rocsolver_sgetf2_npvt_strided_batched rocsolver_dgetf2_npvt_strided_batched
    rocsolver_cgetf2_npvt_strided_batched rocsolver_zgetf2_npvt_strided_batched;
    rocsolver_sgetf2_npvt_strided_batched_64 rocsolver_dgetf2_npvt_strided_batched_64
    rocsolver_cgetf2_npvt_strided_batched_64 rocsolver_zgetf2_npvt_strided_batched_64);
