use num_complex::Complex;

use crate::element::Element;
use crate::functions::solver::Routines;
use crate::functions::{Blas, CType, ComplexBlas};

/// An element of a matrix: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Scalar: Element + PartialEq + Blas + Routines {
    /// The real number of the same precision.
    type Real: Scalar;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
}

/// A [`Scalar`] with an imaginary part.
pub trait ComplexScalar: Scalar + ComplexBlas {}

macro_rules! scalar {
    ($scalar:ty, $real:ty, $raw:ty, $zero:expr, $one:expr) => {
        const _: () = assert!(size_of::<$scalar>() == size_of::<$raw>() && align_of::<$scalar>() == align_of::<$raw>());

        impl CType for $scalar {
            type Raw = $raw;
            type RawReal = $real;
        }

        impl Scalar for $scalar {
            type Real = $real;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
    };
}

scalar!(f32, f32, f32, 0.0, 1.0);
scalar!(f64, f64, f64, 0.0, 1.0);
scalar!(
    Complex<f32>,
    f32,
    rocblas_sys::rocblas_float_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0)
);
scalar!(
    Complex<f64>,
    f64,
    rocblas_sys::rocblas_double_complex,
    Complex::new(0.0, 0.0),
    Complex::new(1.0, 0.0)
);

impl ComplexScalar for Complex<f32> {}
impl ComplexScalar for Complex<f64> {}
