//! rocBLAS' three forms of a product of mixed precision.

use std::ffi::c_void;

use rocblas_sys::{
    rocblas_datatype, rocblas_gemm_algo, rocblas_handle, rocblas_int, rocblas_operation, rocblas_status as Status,
    rocblas_stride,
};

use super::entry;
use super::mixed::{Matrix, Product};

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn rocblas_gemm_ex(
    handle: rocblas_handle,
    trans_a: rocblas_operation,
    trans_b: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: rocblas_datatype,
    lda: rocblas_int,
    b: *const c_void,
    b_type: rocblas_datatype,
    ldb: rocblas_int,
    beta: *const c_void,
    c: *const c_void,
    c_type: rocblas_datatype,
    ldc: rocblas_int,
    d: *mut c_void,
    d_type: rocblas_datatype,
    ldd: rocblas_int,
    compute: rocblas_datatype,
    _algo: rocblas_gemm_algo,
    _solution: i32,
    _flags: u32,
) -> Status {
    let product = Product {
        trans: [trans_a, trans_b],
        m,
        n,
        k,
        alpha,
        beta,
        a: Matrix::without_stride(a, a_type, lda),
        b: Matrix::without_stride(b, b_type, ldb),
        c: Matrix::without_stride(c, c_type, ldc),
        d: Matrix::without_stride(d, d_type, ldd),
        batch: 1,
        listed: false,
        compute,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { product.run(handle) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn rocblas_gemm_strided_batched_ex(
    handle: rocblas_handle,
    trans_a: rocblas_operation,
    trans_b: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: rocblas_datatype,
    lda: rocblas_int,
    stride_a: rocblas_stride,
    b: *const c_void,
    b_type: rocblas_datatype,
    ldb: rocblas_int,
    stride_b: rocblas_stride,
    beta: *const c_void,
    c: *const c_void,
    c_type: rocblas_datatype,
    ldc: rocblas_int,
    stride_c: rocblas_stride,
    d: *mut c_void,
    d_type: rocblas_datatype,
    ldd: rocblas_int,
    stride_d: rocblas_stride,
    batch: rocblas_int,
    compute: rocblas_datatype,
    _algo: rocblas_gemm_algo,
    _solution: i32,
    _flags: u32,
) -> Status {
    let product = Product {
        trans: [trans_a, trans_b],
        m,
        n,
        k,
        alpha,
        beta,
        a: Matrix {
            at: a,
            ty: a_type,
            ld: lda,
            stride: stride_a,
        },
        b: Matrix {
            at: b,
            ty: b_type,
            ld: ldb,
            stride: stride_b,
        },
        c: Matrix {
            at: c,
            ty: c_type,
            ld: ldc,
            stride: stride_c,
        },
        d: Matrix {
            at: d,
            ty: d_type,
            ld: ldd,
            stride: stride_d,
        },
        batch,
        listed: false,
        compute,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { product.run(handle) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn rocblas_gemm_batched_ex(
    handle: rocblas_handle,
    trans_a: rocblas_operation,
    trans_b: rocblas_operation,
    m: rocblas_int,
    n: rocblas_int,
    k: rocblas_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: rocblas_datatype,
    lda: rocblas_int,
    b: *const c_void,
    b_type: rocblas_datatype,
    ldb: rocblas_int,
    beta: *const c_void,
    c: *const c_void,
    c_type: rocblas_datatype,
    ldc: rocblas_int,
    d: *mut c_void,
    d_type: rocblas_datatype,
    ldd: rocblas_int,
    batch: rocblas_int,
    compute: rocblas_datatype,
    _algo: rocblas_gemm_algo,
    _solution: i32,
    _flags: u32,
) -> Status {
    let product = Product {
        trans: [trans_a, trans_b],
        m,
        n,
        k,
        alpha,
        beta,
        a: Matrix::without_stride(a, a_type, lda),
        b: Matrix::without_stride(b, b_type, ldb),
        c: Matrix::without_stride(c, c_type, ldc),
        d: Matrix::without_stride(d, d_type, ldd),
        batch,
        listed: true,
        compute,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { product.run(handle) })
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocblas_sys::Api) {
    api.rocblas_gemm_ex = Some(rocblas_gemm_ex);
    api.rocblas_gemm_batched_ex = Some(rocblas_gemm_batched_ex);
    api.rocblas_gemm_strided_batched_ex = Some(rocblas_gemm_strided_batched_ex);
}
