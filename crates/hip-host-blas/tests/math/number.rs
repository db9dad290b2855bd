//! The four element types of the C interface, and numbers to fill them with.

use num_complex::Complex;
use rocblas_sys::{rocblas_bfloat16, rocblas_double_complex, rocblas_float_complex, rocblas_half};

pub type C64 = Complex<f64>;

/// What device memory can hold: any bytes are a value, and there is no padding.
///
/// # Safety
/// Just that.
pub unsafe trait Plain: Copy + std::fmt::Debug + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: integers and floating point numbers, or structures of equal ones.
        $(unsafe impl Plain for $type {})*
    };
}
plain!(i32, i64, f32, f64, rocblas_float_complex, rocblas_double_complex);
plain!(rocblas_half, rocblas_bfloat16);

/// An element type of the C interface.
pub trait Number: Plain {
    type Real: Number;
    /// Distance from 1 to the next number of its precision.
    const EPSILON: f64;
    fn of(value: C64) -> Self;
    fn wide(self) -> C64;
}

macro_rules! number {
    ($real:ident, $complex:ident) => {
        impl Number for $real {
            type Real = Self;
            const EPSILON: f64 = $real::EPSILON as f64;
            fn of(value: C64) -> Self {
                value.re as $real
            }
            fn wide(self) -> C64 {
                C64::new(self.into(), 0.0)
            }
        }

        impl Number for $complex {
            type Real = $real;
            const EPSILON: f64 = $real::EPSILON as f64;
            fn of(value: C64) -> Self {
                $complex {
                    x: value.re as $real,
                    y: value.im as $real,
                }
            }
            fn wide(self) -> C64 {
                C64::new(self.x.into(), self.y.into())
            }
        }
    };
}
number!(f32, rocblas_float_complex);
number!(f64, rocblas_double_complex);

/// An integer of the C interface.
pub trait Int: Plain + PartialEq + TryFrom<i64, Error: std::fmt::Debug> + Into<i64> {
    fn of(value: i64) -> Self {
        Self::try_from(value).unwrap()
    }
}
impl Int for i32 {}
impl Int for i64 {}

/// Numbers between -1 and 1 from a seed, the same for the same seed.
pub fn numbers<T: Number>(len: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..len).map(|_| T::of(C64::new(next(), next()))).collect()
}

/// A number that is none, in all parts.
pub fn nan<T: Number>() -> T {
    T::of(C64::new(f64::NAN, f64::NAN))
}

/// A value and how far from it a result may be.
pub type Expected = (C64, f64);

/// A sum of products with the bound of its rounding error for `T`.
pub fn sum<T: Number>(terms: impl IntoIterator<Item = (C64, C64)>) -> Expected {
    let (mut sum, mut size, mut count) = (C64::ZERO, 0.0, 0);
    for (a, b) in terms {
        sum += a * b;
        size += a.norm() * b.norm();
        count += 1;
    }
    (sum, size * T::EPSILON * (2.0 * f64::from(count) + 8.0))
}

#[track_caller]
pub fn assert_close<T: Number>(found: T, (value, bound): Expected, what: impl Fn() -> String) {
    let error = (found.wide() - value).norm();
    assert!(
        error <= bound,
        "{}: {found:?} instead of {value}, off by {error:e}, allowed {bound:e}",
        what()
    );
}
