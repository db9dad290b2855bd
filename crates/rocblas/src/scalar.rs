use bytemuck::Pod;
use num_complex::Complex;

/// An element of a matrix: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar:
    Pod + PartialEq + Send + Sync + sealed::Functions + crate::solver::Routines
{
    /// The real number of the same precision.
    type Real: Scalar;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

/// A [`Scalar`] with an imaginary part.
pub trait ComplexScalar: Scalar + sealed::ComplexFunctions {}

pub(crate) mod sealed {
    use rocblas_sys::{
        rocblas_fill, rocblas_handle, rocblas_int, rocblas_operation, rocblas_status,
        rocblas_stride,
    };

    /// A slot of a table, with its C name.
    pub type Slot<F> = (&'static str, Option<F>);

    pub type Gemm<R> = unsafe extern "C" fn(
        rocblas_handle,
        rocblas_operation,
        rocblas_operation,
        rocblas_int,
        rocblas_int,
        rocblas_int,
        *const R,
        *const R,
        rocblas_int,
        *const R,
        rocblas_int,
        *const R,
        *mut R,
        rocblas_int,
    ) -> rocblas_status;

    pub type GemmStridedBatched<R> = unsafe extern "C" fn(
        rocblas_handle,
        rocblas_operation,
        rocblas_operation,
        rocblas_int,
        rocblas_int,
        rocblas_int,
        *const R,
        *const R,
        rocblas_int,
        rocblas_stride,
        *const R,
        rocblas_int,
        rocblas_stride,
        *const R,
        *mut R,
        rocblas_int,
        rocblas_stride,
        rocblas_int,
    ) -> rocblas_status;

    pub type Herk<R, Real> = unsafe extern "C" fn(
        rocblas_handle,
        rocblas_fill,
        rocblas_operation,
        rocblas_int,
        rocblas_int,
        *const Real,
        *const R,
        rocblas_int,
        *const Real,
        *mut R,
        rocblas_int,
    ) -> rocblas_status;

    /// The functions for one scalar. Public in name only: the crate does not export this module.
    pub trait Functions: Sized {
        /// The C type, of the same layout.
        type Raw;

        fn gemm(api: &rocblas_sys::Api) -> Slot<Gemm<Self::Raw>>;
        fn gemm_strided_batched(api: &rocblas_sys::Api) -> Slot<GemmStridedBatched<Self::Raw>>;
    }

    pub trait ComplexFunctions: super::Scalar {
        fn herk(api: &rocblas_sys::Api) -> Slot<Herk<Self::Raw, Self::Real>>;
    }
}

macro_rules! scalar {
    (
        $scalar:ty, $real:ty, $raw:ty, $zero:expr, $one:expr,
        $gemm:ident, $gemm_strided_batched:ident
    ) => {
        const _: () = assert!(
            size_of::<$scalar>() == size_of::<$raw>()
                && align_of::<$scalar>() == align_of::<$raw>()
        );

        impl Scalar for $scalar {
            type Real = $real;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }

        impl sealed::Functions for $scalar {
            type Raw = $raw;

            fn gemm(api: &rocblas_sys::Api) -> sealed::Slot<sealed::Gemm<$raw>> {
                (stringify!($gemm), api.$gemm)
            }

            fn gemm_strided_batched(
                api: &rocblas_sys::Api,
            ) -> sealed::Slot<sealed::GemmStridedBatched<$raw>> {
                (stringify!($gemm_strided_batched), api.$gemm_strided_batched)
            }
        }
    };
}

macro_rules! complex_scalar {
    ($scalar:ty, $raw:ty, $real:ty, $herk:ident) => {
        impl ComplexScalar for $scalar {}

        impl sealed::ComplexFunctions for $scalar {
            fn herk(api: &rocblas_sys::Api) -> sealed::Slot<sealed::Herk<$raw, $real>> {
                (stringify!($herk), api.$herk)
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
    rocblas_sgemm,
    rocblas_sgemm_strided_batched
);
scalar!(
    f64,
    f64,
    f64,
    0.0,
    1.0,
    rocblas_dgemm,
    rocblas_dgemm_strided_batched
);
scalar!(
    Complex<f32>,
    f32,
    rocblas_sys::rocblas_float_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0),
    rocblas_cgemm,
    rocblas_cgemm_strided_batched
);
scalar!(
    Complex<f64>,
    f64,
    rocblas_sys::rocblas_double_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0),
    rocblas_zgemm,
    rocblas_zgemm_strided_batched
);
complex_scalar!(
    Complex<f32>,
    rocblas_sys::rocblas_float_complex,
    f32,
    rocblas_cherk
);
complex_scalar!(
    Complex<f64>,
    rocblas_sys::rocblas_double_complex,
    f64,
    rocblas_zherk
);
