//! Families of C functions as methods of the element types, so that one generic test covers them.

use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::{Config, TestRunner};

/// A trait over the integer type whose methods are the functions of a table: first the four names
/// for `rocblas_int`, then those for `int64_t`.
macro_rules! families {
    ($trait:ident without 64 bits from $table:ident:
        $($method:ident($($argument:ty),*) = $s:ident $d:ident $c:ident $z:ident;)*
    ) => {
        #[allow(clippy::type_complexity)]
        pub trait $trait<I: $crate::number::Int>: $crate::number::Number {
            $(fn $method() -> unsafe extern "C" fn(rocblas_sys::rocblas_handle, $($argument),*)
                -> rocblas_sys::rocblas_status;)*
        }
        $crate::functions::families!(@impl $trait<i32> for f32, $table: $($method($($argument),*) = $s;)*);
        $crate::functions::families!(@impl $trait<i32> for f64, $table: $($method($($argument),*) = $d;)*);
        $crate::functions::families!(@impl $trait<i32> for rocblas_sys::rocblas_float_complex, $table: $($method($($argument),*) = $c;)*);
        $crate::functions::families!(@impl $trait<i32> for rocblas_sys::rocblas_double_complex, $table: $($method($($argument),*) = $z;)*);
    };
    ($trait:ident from $table:ident:
        $($method:ident($($argument:ty),*) =
            $s:ident $d:ident $c:ident $z:ident; $s64:ident $d64:ident $c64:ident $z64:ident;)*
    ) => {
        #[allow(clippy::type_complexity)]
        pub trait $trait<I: $crate::number::Int>: $crate::number::Number {
            $(fn $method() -> unsafe extern "C" fn(rocblas_sys::rocblas_handle, $($argument),*)
                -> rocblas_sys::rocblas_status;)*
        }
        $crate::functions::families!(@impl $trait<i32> for f32, $table: $($method($($argument),*) = $s;)*);
        $crate::functions::families!(@impl $trait<i32> for f64, $table: $($method($($argument),*) = $d;)*);
        $crate::functions::families!(@impl $trait<i32> for rocblas_sys::rocblas_float_complex, $table: $($method($($argument),*) = $c;)*);
        $crate::functions::families!(@impl $trait<i32> for rocblas_sys::rocblas_double_complex, $table: $($method($($argument),*) = $z;)*);
        $crate::functions::families!(@impl $trait<i64> for f32, $table: $($method($($argument),*) = $s64;)*);
        $crate::functions::families!(@impl $trait<i64> for f64, $table: $($method($($argument),*) = $d64;)*);
        $crate::functions::families!(@impl $trait<i64> for rocblas_sys::rocblas_float_complex, $table: $($method($($argument),*) = $c64;)*);
        $crate::functions::families!(@impl $trait<i64> for rocblas_sys::rocblas_double_complex, $table: $($method($($argument),*) = $z64;)*);
    };
    (@impl $trait:ident<$int:ty> for $type:ty, $table:ident:
        $($method:ident($($argument:ty),*) = $name:ident;)*) => {
        const _: () = {
            type I = $int;
            impl $trait<I> for $type {
                $(fn $method() -> unsafe extern "C" fn(rocblas_sys::rocblas_handle, $($argument),*)
                    -> rocblas_sys::rocblas_status {
                    $crate::memory::$table.$name.expect(concat!(stringify!($name), " is in the table"))
                })*
            }
        };
    };
}

/// One test for each element type and integer type from a generic function.
macro_rules! for_all_types {
    ($($test:ident)*) => {
        $crate::functions::for_all_types!(@ s, f32, i32: $($test)*);
        $crate::functions::for_all_types!(@ d, f64, i32: $($test)*);
        $crate::functions::for_all_types!(@ c, rocblas_sys::rocblas_float_complex, i32: $($test)*);
        $crate::functions::for_all_types!(@ z, rocblas_sys::rocblas_double_complex, i32: $($test)*);
        $crate::functions::for_all_types!(@@ $($test)*);
    };
    (32: $($test:ident)*) => {
        mod without_64_bits {
            $(use super::$test;)*
            $crate::functions::for_all_types!(@ s, f32, i32: $($test)*);
            $crate::functions::for_all_types!(@ d, f64, i32: $($test)*);
            $crate::functions::for_all_types!(@ c, rocblas_sys::rocblas_float_complex, i32: $($test)*);
            $crate::functions::for_all_types!(@ z, rocblas_sys::rocblas_double_complex, i32: $($test)*);
        }
    };
    (@@ $($test:ident)*) => {
        $crate::functions::for_all_types!(@ s_64, f32, i64: $($test)*);
        $crate::functions::for_all_types!(@ d_64, f64, i64: $($test)*);
        $crate::functions::for_all_types!(@ c_64, rocblas_sys::rocblas_float_complex, i64: $($test)*);
        $crate::functions::for_all_types!(@ z_64, rocblas_sys::rocblas_double_complex, i64: $($test)*);
    };
    (@ $module:ident, $type:ty, $int:ty: $($test:ident)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                super::$test::<$type, $int>();
            })*
        }
    };
}

pub(crate) use families;
pub(crate) use for_all_types;

/// Runs `test` with inputs from `strategy`, fewer of them than proptest's default: each is a dozen
/// calls, and there are eight types.
pub fn check<V: std::fmt::Debug + 'static>(strategy: impl Strategy<Value = V> + 'static, test: impl Fn(V)) {
    run(&strategy.boxed(), &test);
}

/// Compiled once for each type of input, not once for each test and element type.
fn run<V: std::fmt::Debug>(strategy: &BoxedStrategy<V>, test: &dyn Fn(V)) {
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(strategy, |input| {
        test(input);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
