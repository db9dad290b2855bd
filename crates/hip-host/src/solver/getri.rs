//! The entry points `rocsolver_{s,d,c,z}getri` and `..._getri_outofplace`, each also `..._batched`
//! and `..._strided_batched`: the inverse of a matrix from the factors of getrf.
//!
//! `info` is 0, or the number of the first pivot that is zero; the inverse is not stored then
//! (rocSOLVER leaves the result undefined). Checks as in rocSOLVER's
//! library/src/lapack/roclapack_getri.hpp and roclapack_getri_outofplace.hpp.

use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_status, rocblas_stride};

use super::info::Info;
use super::lu;
use super::pivots::{Given, Pivots};
use crate::blas::aliasing::ensure_elements_apart;
use crate::blas::arguments::{enqueue, ensure, sizes};
use crate::blas::batch::{Batch, Place};
use crate::blas::current_handle;
use crate::blas::entry_points::for_element_types;
use crate::blas::scalar::Scalar;
use crate::blas::status::{Outcome, entry};
use crate::blas::view::Op;

struct Arguments<T> {
    handle: rocblas_handle,
    n: rocblas_int,
    a: (Place<T>, rocblas_int),
    ipiv: Given<rocblas_int>,
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
    let missing = n != 0 && (a.0.is_null() || to.0.is_null() || ipiv.ptr.is_null());
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

macro_rules! getri {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *mut $c,
            lda: $int,
            ipiv: *mut $int,
            info: *mut $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::single(A.cast_const().cast()), lda),
                ipiv: Given { ptr: ipiv, stride: 0 },
                c: None,
                info,
                batch_count: 1,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(getri: rocsolver_sgetri rocsolver_dgetri rocsolver_cgetri rocsolver_zgetri);

macro_rules! batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *const *mut $c,
            lda: $int,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::Array(A.cast()), lda),
                ipiv: Given {
                    ptr: ipiv,
                    stride: strideP,
                },
                c: None,
                info,
                batch_count,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(batched:
    rocsolver_sgetri_batched rocsolver_dgetri_batched
    rocsolver_cgetri_batched rocsolver_zgetri_batched);

macro_rules! strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::Strided(A.cast(), strideA), lda),
                ipiv: Given {
                    ptr: ipiv,
                    stride: strideP,
                },
                c: None,
                info,
                batch_count,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(strided:
    rocsolver_sgetri_strided_batched rocsolver_dgetri_strided_batched
    rocsolver_cgetri_strided_batched rocsolver_zgetri_strided_batched);

macro_rules! outofplace {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *mut $c,
            lda: $int,
            ipiv: *mut $int,
            C: *mut $c,
            ldc: $int,
            info: *mut $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::single(A.cast_const().cast()), lda),
                ipiv: Given { ptr: ipiv, stride: 0 },
                c: Some((Place::single(C.cast_const().cast()), ldc)),
                info,
                batch_count: 1,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(outofplace:
    rocsolver_sgetri_outofplace rocsolver_dgetri_outofplace
    rocsolver_cgetri_outofplace rocsolver_zgetri_outofplace);

macro_rules! outofplace_batched {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *const *mut $c,
            lda: $int,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            C: *const *mut $c,
            ldc: $int,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::Array(A.cast()), lda),
                ipiv: Given {
                    ptr: ipiv,
                    stride: strideP,
                },
                c: Some((Place::Array(C.cast()), ldc)),
                info,
                batch_count,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(outofplace_batched:
    rocsolver_sgetri_outofplace_batched rocsolver_dgetri_outofplace_batched
    rocsolver_cgetri_outofplace_batched rocsolver_zgetri_outofplace_batched);

macro_rules! outofplace_strided {
    ($name:ident, $int:ty, $c:ty, $rust:ty) => {
        #[allow(non_snake_case)]
        pub(super) unsafe extern "C" fn $name(
            handle: rocblas_handle,
            n: $int,
            A: *mut $c,
            lda: $int,
            strideA: rocblas_stride,
            ipiv: *mut $int,
            strideP: rocblas_stride,
            C: *mut $c,
            ldc: $int,
            strideC: rocblas_stride,
            info: *mut $int,
            batch_count: $int,
        ) -> rocblas_status {
            let arguments = Arguments::<$rust> {
                handle,
                n,
                a: (Place::Strided(A.cast(), strideA), lda),
                ipiv: Given {
                    ptr: ipiv,
                    stride: strideP,
                },
                c: Some((Place::Strided(C.cast(), strideC), ldc)),
                info,
                batch_count,
            };
            // SAFETY: the C caller's duties.
            entry(stringify!($name), |name| unsafe { getri(name, arguments) })
        }
    };
}
for_element_types!(outofplace_strided:
    rocsolver_sgetri_outofplace_strided_batched rocsolver_dgetri_outofplace_strided_batched
    rocsolver_cgetri_outofplace_strided_batched rocsolver_zgetri_outofplace_strided_batched);
