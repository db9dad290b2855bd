//! The C functions of level 3: matrices.

use num_complex::Complex;
use rocblas_sys::{
    Api, rocblas_diagonal, rocblas_fill, rocblas_handle, rocblas_int, rocblas_operation, rocblas_side, rocblas_status,
    rocblas_stride,
};

use super::routine::{CType, Routine, routine};

type GemmSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
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

routine!(Gemm::gemm: GemmSignature, "6.3" {
    f32: rocblas_sgemm, rocblas_sgemm_64;
    f64: rocblas_dgemm, rocblas_dgemm_64;
    Complex<f32>: rocblas_cgemm, rocblas_cgemm_64;
    Complex<f64>: rocblas_zgemm, rocblas_zgemm_64;
});

type GemmStridedBatchedSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    rocblas_stride,
    *const <S as CType>::Raw,
    I,
    rocblas_stride,
    *const <S as CType>::Raw,
    *mut <S as CType>::Raw,
    I,
    rocblas_stride,
    I,
) -> rocblas_status;

routine!(GemmStridedBatched::gemm_strided_batched: GemmStridedBatchedSignature, "6.3" {
    f32: rocblas_sgemm_strided_batched, rocblas_sgemm_strided_batched_64;
    f64: rocblas_dgemm_strided_batched, rocblas_dgemm_strided_batched_64;
    Complex<f32>: rocblas_cgemm_strided_batched, rocblas_cgemm_strided_batched_64;
    Complex<f64>: rocblas_zgemm_strided_batched, rocblas_zgemm_strided_batched_64;
});

type GemmBatchedSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_operation,
    rocblas_operation,
    I,
    I,
    I,
    *const <S as CType>::Raw,
    *const *const <S as CType>::Raw,
    I,
    *const *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    *const *mut <S as CType>::Raw,
    I,
    I,
) -> rocblas_status;

routine!(GemmBatched::gemm_batched: GemmBatchedSignature, "6.3" {
    f32: rocblas_sgemm_batched, rocblas_sgemm_batched_64;
    f64: rocblas_dgemm_batched, rocblas_dgemm_batched_64;
    Complex<f32>: rocblas_cgemm_batched, rocblas_cgemm_batched_64;
    Complex<f64>: rocblas_zgemm_batched, rocblas_zgemm_batched_64;
});

type SyrkSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_fill,
    rocblas_operation,
    I,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::Raw,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Syrk::syrk: SyrkSignature, "6.3" {
    f32: rocblas_ssyrk, rocblas_ssyrk_64;
    f64: rocblas_dsyrk, rocblas_dsyrk_64;
    Complex<f32>: rocblas_csyrk, rocblas_csyrk_64;
    Complex<f64>: rocblas_zsyrk, rocblas_zsyrk_64;
});

type HerkSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_fill,
    rocblas_operation,
    I,
    I,
    *const <S as CType>::RawReal,
    *const <S as CType>::Raw,
    I,
    *const <S as CType>::RawReal,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Herk::herk: HerkSignature, "6.3" {
    Complex<f32>: rocblas_cherk, rocblas_cherk_64;
    Complex<f64>: rocblas_zherk, rocblas_zherk_64;
});

type TrsmSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_side,
    rocblas_fill,
    rocblas_operation,
    rocblas_diagonal,
    I,
    I,
    *const <S as CType>::Raw,
    *const <S as CType>::Raw,
    I,
    *mut <S as CType>::Raw,
    I,
) -> rocblas_status;

routine!(Trsm::trsm: TrsmSignature, "6.2" {
    f32: rocblas_strsm, rocblas_strsm_64;
    f64: rocblas_dtrsm, rocblas_dtrsm_64;
    Complex<f32>: rocblas_ctrsm, rocblas_ctrsm_64;
    Complex<f64>: rocblas_ztrsm, rocblas_ztrsm_64;
});

type TrmmSignature<S, I> = unsafe extern "C" fn(
    rocblas_handle,
    rocblas_side,
    rocblas_fill,
    rocblas_operation,
    rocblas_diagonal,
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

/// Not made by `routine!`: up to ROCm 5 `rocblas_?trmm` has no output matrix, and `rocblas_?trmm_outofplace` is called
/// as `rocblas_?trmm` is since 6.0. A library fills the slots of its own way only.
pub trait Trmm: CType {
    fn trmm(api: &Api) -> Routine<TrmmSignature<Self, rocblas_int>, TrmmSignature<Self, i64>>;
}

macro_rules! trmm {
    ($($scalar:ty: $today:ident, $until_5:ident, $wide:ident;)+) => {$(
        impl Trmm for $scalar {
            fn trmm(api: &Api) -> Routine<TrmmSignature<Self, rocblas_int>, TrmmSignature<Self, i64>> {
                let narrow = match (api.$today, api.$until_5) {
                    (None, Some(function)) => (stringify!($until_5), Some(function)),
                    (function, _) => (stringify!($today), function),
                };
                Routine {
                    narrow,
                    wide: (stringify!($wide), api.$wide),
                    wide_since: "6.3",
                }
            }
        }
    )+};
}
trmm! {
    f32: rocblas_strmm, rocblas_strmm_outofplace, rocblas_strmm_64;
    f64: rocblas_dtrmm, rocblas_dtrmm_outofplace, rocblas_dtrmm_64;
    Complex<f32>: rocblas_ctrmm, rocblas_ctrmm_outofplace, rocblas_ctrmm_64;
    Complex<f64>: rocblas_ztrmm, rocblas_ztrmm_outofplace, rocblas_ztrmm_64;
}
