//! How a family of C functions is defined: one macro for the signature, one line for the names.

/// Calls the macro `$entry` for the four element types and both integer types. Each call gets the
/// function's name, its integer type, the element's type in C and here (the same layout).
macro_rules! for_all_types {
    ($entry:ident: $s:ident $d:ident $c:ident $z:ident; $s64:ident $d64:ident $c64:ident $z64:ident) => {
        $crate::blas::entry_points::for_real_types!($entry: $s $d; $s64 $d64);
        $crate::blas::entry_points::for_complex_types!($entry: $c $z; $c64 $z64);
    };
}

/// As [`for_all_types`], for functions that have no `_64` form.
macro_rules! for_element_types {
    ($entry:ident: $s:ident $d:ident $c:ident $z:ident) => {
        $entry!($s, rocblas_sys::rocblas_int, f32, f32);
        $entry!($d, rocblas_sys::rocblas_int, f64, f64);
        $entry!(
            $c,
            rocblas_sys::rocblas_int,
            rocblas_sys::rocblas_float_complex,
            num_complex::Complex<f32>
        );
        $entry!(
            $z,
            rocblas_sys::rocblas_int,
            rocblas_sys::rocblas_double_complex,
            num_complex::Complex<f64>
        );
    };
}

/// As [`for_all_types`], for functions that take real numbers only.
macro_rules! for_real_types {
    ($entry:ident: $s:ident $d:ident; $s64:ident $d64:ident) => {
        $entry!($s, rocblas_sys::rocblas_int, f32, f32);
        $entry!($d, rocblas_sys::rocblas_int, f64, f64);
        $entry!($s64, i64, f32, f32);
        $entry!($d64, i64, f64, f64);
    };
}

/// As [`for_all_types`], for functions that take complex numbers only.
macro_rules! for_complex_types {
    ($entry:ident: $c:ident $z:ident; $c64:ident $z64:ident) => {
        $entry!(
            $c,
            rocblas_sys::rocblas_int,
            rocblas_sys::rocblas_float_complex,
            num_complex::Complex<f32>
        );
        $entry!(
            $z,
            rocblas_sys::rocblas_int,
            rocblas_sys::rocblas_double_complex,
            num_complex::Complex<f64>
        );
        $entry!(
            $c64,
            i64,
            rocblas_sys::rocblas_float_complex,
            num_complex::Complex<f32>
        );
        $entry!(
            $z64,
            i64,
            rocblas_sys::rocblas_double_complex,
            num_complex::Complex<f64>
        );
    };
}

pub(crate) use for_all_types;
pub(crate) use for_complex_types;
pub(crate) use for_element_types;
pub(crate) use for_real_types;
