//! The C functions of level 2: a matrix and vectors.

use num_complex::Complex;
use rocblas_sys::{rocblas_handle, rocblas_operation, rocblas_status};

use super::routine::{CType, routine};

type GemvSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    I,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Gemv::gemv: GemvSignature, "6.2" {
    f32: rocblas_sgemv, rocblas_sgemv_64;
    f64: rocblas_dgemv, rocblas_dgemv_64;
    Complex<f32>: rocblas_cgemv, rocblas_cgemv_64;
    Complex<f64>: rocblas_zgemv, rocblas_zgemv_64;
});

pub(crate) type GerSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    I,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    I,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Ger::ger: GerSignature, "6.2" {
    f32: rocblas_sger, rocblas_sger_64;
    f64: rocblas_dger, rocblas_dger_64;
    Complex<f32>: rocblas_cgeru, rocblas_cgeru_64;
    Complex<f64>: rocblas_zgeru, rocblas_zgeru_64;
});

routine!(Gerc::gerc: GerSignature, "6.2" {
    f32: rocblas_sger, rocblas_sger_64;
    f64: rocblas_dger, rocblas_dger_64;
    Complex<f32>: rocblas_cgerc, rocblas_cgerc_64;
    Complex<f64>: rocblas_zgerc, rocblas_zgerc_64;
});
