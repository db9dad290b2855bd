use bytemuck::Pod;
use num_complex::Complex;
use rocblas_sys::rocblas_datatype;

/// An element that rocBLAS knows by a number: the [`Scalar`](crate::Scalar)s, `i8` and `i32`, and with the feature
/// `half` (on by default) `half::f16` and `half::bf16`.
#[doc(alias = "rocblas_datatype")]
pub trait Element: Pod + Send + Sync + sealed::DataType {}

/// An input of [`Handle::gemm_ex`](crate::Handle::gemm_ex), with the output and the type it is computed in, which is
/// also that of `alpha` and `beta`.
///
/// | input | output | computed in |
/// |---|---|---|
/// | `f32`, `f64`, `Complex<f32>`, `Complex<f64>` | the same | the same |
/// | `f16` | `f16` | `f16` or `f32` |
/// | `f16` | `f32` | `f32` |
/// | `bf16` | `bf16` or `f32` | `f32` |
/// | `i8` | `i32` | `i32` |
///
/// These are the combinations that the documentation of `rocblas_gemm_ex` lists in every supported release; others do
/// not compile:
///
/// ```compile_fail,E0277
/// # use hip::DeviceBuffer;
/// # use rocblas::{Handle, Matrix, Op, Result};
/// fn no_such_sum(blas: &Handle, a: Matrix<&DeviceBuffer<i8>>, c: Matrix<&mut DeviceBuffer<f32>>) -> Result<()> {
///     blas.gemm_ex(Op::None, Op::None, 1.0_f32, a, a, 0.0_f32, c)
/// }
/// ```
pub trait GemmInput<Output: Element, Compute: Element>: Element {}

pub(crate) mod sealed {
    /// The number of a type. Public in name only: the crate does not export this module.
    pub trait DataType {
        const DATATYPE: rocblas_sys::rocblas_datatype;
    }
}

macro_rules! elements {
    ($($(#[$when:meta])* $element:ty: $datatype:ident;)+) => {$(
        $(#[$when])*
        impl sealed::DataType for $element {
            const DATATYPE: rocblas_datatype = rocblas_datatype::$datatype;
        }
        $(#[$when])*
        impl Element for $element {}
    )+};
}
elements! {
    f32: rocblas_datatype_f32_r;
    f64: rocblas_datatype_f64_r;
    Complex<f32>: rocblas_datatype_f32_c;
    Complex<f64>: rocblas_datatype_f64_c;
    i8: rocblas_datatype_i8_r;
    i32: rocblas_datatype_i32_r;
    #[cfg(feature = "half")]
    half::f16: rocblas_datatype_f16_r;
    #[cfg(feature = "half")]
    half::bf16: rocblas_datatype_bf16_r;
}

macro_rules! inputs {
    ($($(#[$when:meta])* $input:ty => $output:ty, $compute:ty;)+) => {$(
        $(#[$when])*
        impl GemmInput<$output, $compute> for $input {}
    )+};
}
inputs! {
    f32 => f32, f32;
    f64 => f64, f64;
    Complex<f32> => Complex<f32>, Complex<f32>;
    Complex<f64> => Complex<f64>, Complex<f64>;
    i8 => i32, i32;
    #[cfg(feature = "half")]
    half::f16 => half::f16, half::f16;
    #[cfg(feature = "half")]
    half::f16 => half::f16, f32;
    #[cfg(feature = "half")]
    half::f16 => f32, f32;
    #[cfg(feature = "half")]
    half::bf16 => half::bf16, f32;
    #[cfg(feature = "half")]
    half::bf16 => f32, f32;
}
