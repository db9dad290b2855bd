use bytemuck::Pod;
use num_complex::Complex;

use super::abi::DataType;

/// An element that DLPack has a name for: integers, `f32`, `f64`, and complex numbers of both.
///
/// A tensor's reader believes the name, so no other type can take one:
///
/// ```compile_fail,E0277
/// # use interop::dlpack::{Element, abi::DataType};
/// #[derive(Clone, Copy)]
/// #[repr(transparent)]
/// struct Wide([f32; 16]);
/// // SAFETY: an array of numbers.
/// unsafe impl bytemuck::Zeroable for Wide {}
/// // SAFETY: as above.
/// unsafe impl bytemuck::Pod for Wide {}
/// impl Element for Wide {
///     const DATA_TYPE: DataType = <f32 as Element>::DATA_TYPE;
/// }
/// ```
pub trait Element: Pod + sealed::Element {
    /// Its name.
    const DATA_TYPE: DataType;
}

mod sealed {
    /// Public in name only: the crate does not export this module.
    pub trait Element {}
}

macro_rules! elements {
    ($($element:ty: $code:literal;)+) => {$(
        impl sealed::Element for $element {}

        impl Element for $element {
            const DATA_TYPE: DataType = DataType {
                code: $code,
                bits: 8 * size_of::<$element>() as u8,
                lanes: 1,
            };
        }
    )+};
}
elements! {
    i8: 0;
    i16: 0;
    i32: 0;
    i64: 0;
    u8: 1;
    u16: 1;
    u32: 1;
    u64: 1;
    f32: 2;
    f64: 2;
    Complex<f32>: 5;
    Complex<f64>: 5;
}
