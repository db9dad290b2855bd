//! The C functions of level 1: vectors.

use num_complex::Complex;
use rocblas_sys::{rocblas_handle, rocblas_status};

use super::routine::{CType, routine};

type AxpySignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Axpy::axpy: AxpySignature, "6.1" {
    f32: rocblas_saxpy, rocblas_saxpy_64;
    f64: rocblas_daxpy, rocblas_daxpy_64;
    Complex<f32>: rocblas_caxpy, rocblas_caxpy_64;
    Complex<f64>: rocblas_zaxpy, rocblas_zaxpy_64;
});

type CopySignature<S, I> =
    unsafe extern "C" fn(rocblas_handle, I, *const <S as CType>::Raw, I, *mut <S as CType>::Raw, I) -> rocblas_status;

type SwapSignature<S, I> =
    unsafe extern "C" fn(rocblas_handle, I, *mut <S as CType>::Raw, I, *mut <S as CType>::Raw, I) -> rocblas_status;

routine!(Copy::copy: CopySignature, "6.1" {
    f32: rocblas_scopy, rocblas_scopy_64;
    f64: rocblas_dcopy, rocblas_dcopy_64;
    Complex<f32>: rocblas_ccopy, rocblas_ccopy_64;
    Complex<f64>: rocblas_zcopy, rocblas_zcopy_64;
});

routine!(Swap::swap: SwapSignature, "6.1" {
    f32: rocblas_sswap, rocblas_sswap_64;
    f64: rocblas_dswap, rocblas_dswap_64;
    Complex<f32>: rocblas_cswap, rocblas_cswap_64;
    Complex<f64>: rocblas_zswap, rocblas_zswap_64;
});

pub(crate) type DotSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    I,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    I,
    *mut <S as CType>::Raw,
) -> rocblas_status;

routine!(Dot::dot: DotSignature, "6.1" {
    f32: rocblas_sdot, rocblas_sdot_64;
    f64: rocblas_ddot, rocblas_ddot_64;
    Complex<f32>: rocblas_cdotu, rocblas_cdotu_64;
    Complex<f64>: rocblas_zdotu, rocblas_zdotu_64;
});

routine!(Dotc::dotc: DotSignature, "6.1" {
    f32: rocblas_sdot, rocblas_sdot_64;
    f64: rocblas_ddot, rocblas_ddot_64;
    Complex<f32>: rocblas_cdotc, rocblas_cdotc_64;
    Complex<f64>: rocblas_zdotc, rocblas_zdotc_64;
});

pub(crate) type NormSignature<S, I> =
    unsafe extern "C" fn(rocblas_handle, I, *const <S as CType>::Raw, I, *mut <S as CType>::RawReal) -> rocblas_status;

routine!(Nrm2::nrm2: NormSignature, "6.1" {
    f32: rocblas_snrm2, rocblas_snrm2_64;
    f64: rocblas_dnrm2, rocblas_dnrm2_64;
    Complex<f32>: rocblas_scnrm2, rocblas_scnrm2_64;
    Complex<f64>: rocblas_dznrm2, rocblas_dznrm2_64;
});

routine!(Asum::asum: NormSignature, "6.1" {
    f32: rocblas_sasum, rocblas_sasum_64;
    f64: rocblas_dasum, rocblas_dasum_64;
    Complex<f32>: rocblas_scasum, rocblas_scasum_64;
    Complex<f64>: rocblas_dzasum, rocblas_dzasum_64;
});

type ScalSignature<S, I> =
    unsafe extern "C" fn(rocblas_handle, I, *const <S as CType>::Raw, *mut <S as CType>::Raw, I) -> rocblas_status;

type ScalRealSignature<S, I> =
    unsafe extern "C" fn(rocblas_handle, I, *const <S as CType>::RawReal, *mut <S as CType>::Raw, I) -> rocblas_status;

routine!(Scal::scal: ScalSignature, "6.1" {
    f32: rocblas_sscal, rocblas_sscal_64;
    f64: rocblas_dscal, rocblas_dscal_64;
    Complex<f32>: rocblas_cscal, rocblas_cscal_64;
    Complex<f64>: rocblas_zscal, rocblas_zscal_64;
});

routine!(ScalReal::scal_real: ScalRealSignature, "6.1" {
    Complex<f32>: rocblas_csscal, rocblas_csscal_64;
    Complex<f64>: rocblas_zdscal, rocblas_zdscal_64;
});
