//! The four element types of BLAS and what the generic code needs to know about them.

use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use faer::traits::{ComplexField, RealField};
use num_complex::Complex;

/// The real type under an element type, with the arithmetic that the streaming kernel is written
/// in.
pub(crate) trait Real:
    RealField
    + Copy
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    const ZERO: Self;
    fn widen(self) -> f64;
    /// The nearest value of this type.
    fn narrow(value: f64) -> Self;
    /// `self * b + c`, fused where `FUSED` says that the caller was compiled for a machine that
    /// fuses; elsewhere a fused operation would be a library call per element.
    fn multiply_add<const FUSED: bool>(self, b: Self, c: Self) -> Self;
}

macro_rules! real {
    ($($real:ty),*) => {$(
        impl Real for $real {
            const ZERO: Self = 0.0;
            fn widen(self) -> f64 {
                self.into()
            }
            fn narrow(value: f64) -> Self {
                value as $real
            }
            #[inline(always)]
            fn multiply_add<const FUSED: bool>(self, b: Self, c: Self) -> Self {
                if FUSED { self.mul_add(b, c) } else { self * b + c }
            }
        }
    )*};
}
real!(f32, f64);

/// An element of a matrix: `f32`, `f64`, or the complex number over one of them.
///
/// # Safety
/// `Self` is laid out as `1` (or, if `COMPLEX`, `2`) consecutive values of `Self::Part`, real part
/// first.
pub(crate) unsafe trait Scalar:
    ComplexField<Real = Self::Part>
    + Copy
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// The type of the real and the imaginary part.
    type Part: Real;
    const COMPLEX: bool;
    const ZERO: Self;
    const ONE: Self;
    fn conjugate(self) -> Self;
    fn from_part(re: Self::Part) -> Self;
    /// A real number takes the real part only.
    fn from_parts(re: Self::Part, im: Self::Part) -> Self;
    fn re(self) -> Self::Part;
    fn im(self) -> Self::Part;
}

macro_rules! scalar {
    ($($real:ty),*) => {$(
        // SAFETY: one value of the part's type.
        unsafe impl Scalar for $real {
            type Part = $real;
            const COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn conjugate(self) -> Self {
                self
            }
            fn from_part(re: $real) -> Self {
                re
            }
            fn from_parts(re: $real, _: $real) -> Self {
                re
            }
            fn re(self) -> $real {
                self
            }
            fn im(self) -> $real {
                0.0
            }
        }

        // SAFETY: `Complex` is `repr(C)` with the fields `re` and `im` in this order.
        unsafe impl Scalar for Complex<$real> {
            type Part = $real;
            const COMPLEX: bool = true;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            fn conjugate(self) -> Self {
                self.conj()
            }
            fn from_part(re: $real) -> Self {
                Complex::new(re, 0.0)
            }
            fn from_parts(re: $real, im: $real) -> Self {
                Complex::new(re, im)
            }
            fn re(self) -> $real {
                self.re
            }
            fn im(self) -> $real {
                self.im
            }
        }
    )*};
}
scalar!(f32, f64);
