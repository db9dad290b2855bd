use bytemuck::Pod;
use num_complex::Complex;

use crate::functions::{Blas, ComplexBlas};
use crate::routine::CType;
/// An element of a matrix: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar: Pod + PartialEq + Send + Sync + Blas + sealed::Functions {
    /// The real number of the same precision.
    type Real: Scalar;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

/// A [`Scalar`] with an imaginary part.
pub trait ComplexScalar: Scalar + ComplexBlas {}

pub(crate) mod sealed {
    use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_int, rocblas_status, rocblas_stride};

    use crate::routine::CType;

    /// A slot of a table, with its C name.
    pub type Slot<F> = (&'static str, Option<F>);

    /// `rocsolver_?potrf` and `rocsolver_?potri`.
    pub type Cholesky<R> = unsafe extern "C" fn(
        rocblas_handle,
        rocblas_fill,
        rocblas_int,
        *mut R,
        rocblas_int,
        *mut rocblas_int,
    ) -> rocblas_status;

    /// `rocsolver_?potrf_strided_batched` and `rocsolver_?potri_strided_batched`.
    pub type CholeskyStridedBatched<R> = unsafe extern "C" fn(
        rocblas_handle,
        rocblas_fill,
        rocblas_int,
        *mut R,
        rocblas_int,
        rocblas_stride,
        *mut rocblas_int,
        rocblas_int,
    ) -> rocblas_status;

    /// rocSOLVER's functions for one scalar. Public in name only: the crate does not export this module.
    pub trait Functions: CType {
        fn potrf(api: &rocsolver_sys::Api) -> Slot<Cholesky<Self::Raw>>;
        fn potri(api: &rocsolver_sys::Api) -> Slot<Cholesky<Self::Raw>>;
        fn potrf_strided_batched(
            api: &rocsolver_sys::Api,
        ) -> Slot<CholeskyStridedBatched<Self::Raw>>;
        fn potri_strided_batched(
            api: &rocsolver_sys::Api,
        ) -> Slot<CholeskyStridedBatched<Self::Raw>>;
    }
}

macro_rules! scalar {
    (
        $scalar:ty, $real:ty, $raw:ty, $zero:expr, $one:expr,
        $potrf:ident, $potri:ident,
        $potrf_strided_batched:ident, $potri_strided_batched:ident
    ) => {
        const _: () = assert!(
            size_of::<$scalar>() == size_of::<$raw>()
                && align_of::<$scalar>() == align_of::<$raw>()
        );

        impl CType for $scalar {
            type Raw = $raw;
            type RawReal = $real;
        }

        impl Scalar for $scalar {
            type Real = $real;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }

        impl sealed::Functions for $scalar {
            fn potrf(api: &rocsolver_sys::Api) -> sealed::Slot<sealed::Cholesky<$raw>> {
                (stringify!($potrf), api.$potrf)
            }

            fn potri(api: &rocsolver_sys::Api) -> sealed::Slot<sealed::Cholesky<$raw>> {
                (stringify!($potri), api.$potri)
            }

            fn potrf_strided_batched(
                api: &rocsolver_sys::Api,
            ) -> sealed::Slot<sealed::CholeskyStridedBatched<$raw>> {
                (
                    stringify!($potrf_strided_batched),
                    api.$potrf_strided_batched,
                )
            }

            fn potri_strided_batched(
                api: &rocsolver_sys::Api,
            ) -> sealed::Slot<sealed::CholeskyStridedBatched<$raw>> {
                (
                    stringify!($potri_strided_batched),
                    api.$potri_strided_batched,
                )
            }
        }
    };
}

scalar!(
    f32,
    f32,
    f32,
    0.0,
    1.0,
    rocsolver_spotrf,
    rocsolver_spotri,
    rocsolver_spotrf_strided_batched,
    rocsolver_spotri_strided_batched
);
scalar!(
    f64,
    f64,
    f64,
    0.0,
    1.0,
    rocsolver_dpotrf,
    rocsolver_dpotri,
    rocsolver_dpotrf_strided_batched,
    rocsolver_dpotri_strided_batched
);
scalar!(
    Complex<f32>,
    f32,
    rocblas_sys::rocblas_float_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0),
    rocsolver_cpotrf,
    rocsolver_cpotri,
    rocsolver_cpotrf_strided_batched,
    rocsolver_cpotri_strided_batched
);
scalar!(
    Complex<f64>,
    f64,
    rocblas_sys::rocblas_double_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0),
    rocsolver_zpotrf,
    rocsolver_zpotri,
    rocsolver_zpotrf_strided_batched,
    rocsolver_zpotri_strided_batched
);

impl ComplexScalar for Complex<f32> {}
impl ComplexScalar for Complex<f64> {}
