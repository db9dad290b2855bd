//! Which status a wrong call returns: rocSOLVER's order of checks, and the model's own.

use std::ptr::null_mut;

use num_complex::Complex;
use rocblas_sys::{rocblas_fill, rocblas_float_complex, rocblas_handle, rocblas_status};

use crate::device::{Buffer, Handle, SUCCESS, slot};

const LOWER: rocblas_fill = rocblas_fill::rocblas_fill_lower;
const INVALID_HANDLE: rocblas_status = rocblas_status::rocblas_status_invalid_handle;
const INVALID_VALUE: rocblas_status = rocblas_status::rocblas_status_invalid_value;
const INVALID_SIZE: rocblas_status = rocblas_status::rocblas_status_invalid_size;
const INVALID_POINTER: rocblas_status = rocblas_status::rocblas_status_invalid_pointer;

#[test]
fn potrf_and_potri_check_in_rocsolver_order() {
    let api = hip_host_blas::rocsolver_api();
    let handle = Handle::new();
    let identity: Vec<_> = (0..9).map(|i| Complex::new(f32::from(i % 4 == 0), 0.0)).collect();
    let (a, info) = (Buffer::new(&identity), Buffer::new(&[-1i32]));
    for step in [slot!(api, rocsolver_cpotrf), slot!(api, rocsolver_cpotri)] {
        let call = |handle: rocblas_handle, uplo, n, a: *mut Complex<f32>, ld, info| {
            // SAFETY: whatever is wrong with the arguments must be found before it is used.
            unsafe { step(handle, uplo, n, a.cast(), ld, info) }
        };
        let (h, none) = (handle.0, null_mut());
        assert_eq!(call(h, LOWER, 3, a.ptr(), 3, info.ptr()), SUCCESS);
        assert_eq!(info.read(), [0]);
        assert_eq!(
            call(null_mut(), rocblas_fill(0), -1, none, -1, null_mut()),
            INVALID_HANDLE
        );
        assert_eq!(call(h, rocblas_fill(0), -1, none, -1, null_mut()), INVALID_VALUE);
        assert_eq!(
            call(h, rocblas_fill::rocblas_fill_full, 3, a.ptr(), 3, info.ptr()),
            INVALID_VALUE
        );
        assert_eq!(call(h, LOWER, -1, none, 3, null_mut()), INVALID_SIZE);
        assert_eq!(call(h, LOWER, 3, none, 2, null_mut()), INVALID_SIZE);
        assert_eq!(call(h, LOWER, 3, none, 3, info.ptr()), INVALID_POINTER);
        assert_eq!(call(h, LOWER, 3, a.ptr(), 3, null_mut()), INVALID_POINTER);
        // One column too many, and an info on the host.
        assert_eq!(call(h, LOWER, 4, a.ptr(), 4, info.ptr()), INVALID_POINTER);
        assert_eq!(call(h, LOWER, 3, a.ptr(), 3, &mut 0), INVALID_POINTER);
    }
}

#[test]
fn info_is_set_for_an_empty_matrix_too() {
    let handle = Handle::new();
    let info = Buffer::new(&[-1i32]);
    // SAFETY: no matrix is needed for n == 0.
    let status = unsafe {
        slot!(hip_host_blas::rocsolver_api(), rocsolver_cpotrf)(handle.0, LOWER, 0, null_mut(), 1, info.ptr())
    };
    assert_eq!(status, SUCCESS);
    assert_eq!(info.read(), [0]);
}

/// Matrices without elements are nowhere: no array of them, or no address, is needed.
#[test]
fn no_function_reads_the_place_of_an_empty_matrix() {
    let api = hip_host_blas::rocsolver_api();
    let handle = Handle::new();
    let (h, count) = (handle.0, 2);
    let none = null_mut::<*mut rocblas_float_complex>();
    let (pivots, no_matrix) = (null_mut::<i32>(), null_mut::<rocblas_float_complex>());
    let check = |name: &str, call: &dyn Fn(*mut i32) -> rocblas_status| {
        let info = Buffer::new(&[-1i32; 2]);
        assert_eq!(call(info.ptr()), SUCCESS, "{name}");
        assert_eq!(info.read(), [0, 0], "{name}");
    };
    // SAFETY: no matrix is needed for n == 0, nor its pivots.
    unsafe {
        let call = slot!(api, rocsolver_cpotrf_batched);
        check("potrf", &|info| call(h, LOWER, 0, none, 1, info, count));
        let call = slot!(api, rocsolver_cpotri_batched);
        check("potri", &|info| call(h, LOWER, 0, none, 1, info, count));
        let call = slot!(api, rocsolver_cposv_batched);
        check("posv", &|info| call(h, LOWER, 0, 3, none, 1, none, 1, info, count));
        let call = slot!(api, rocsolver_cgetrf_batched);
        check("getrf", &|info| call(h, 0, 0, none, 1, pivots, 0, info, count));
        let call = slot!(api, rocsolver_cgetrf_npvt_batched);
        check("getrf_npvt", &|info| call(h, 0, 0, none, 1, info, count));
        let call = slot!(api, rocsolver_cgesv_batched);
        check("gesv", &|info| call(h, 0, 3, none, 1, pivots, 0, none, 1, info, count));
        let call = slot!(api, rocsolver_cgetri_batched);
        check("getri", &|info| call(h, 0, none, 1, pivots, 0, info, count));
        let call = slot!(api, rocsolver_cgetri_outofplace_batched);
        check("getri_outofplace", &|info| {
            call(h, 0, none, 1, pivots, 0, none, 1, info, count)
        });
        let call = slot!(api, rocsolver_cgetri_strided_batched);
        check("getri_strided", &|info| {
            call(h, 0, no_matrix, 1, 0, pivots, 0, info, count)
        });
    }
}
