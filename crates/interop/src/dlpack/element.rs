use super::abi::DataType;
use bytemuck::Pod;
use num_complex::Complex;

/// An element that DLPack has a name for: integers, `f32`, `f64`, and complex numbers of both.
pub trait Element: Pod {
    /// Its name.
    const DATA_TYPE: DataType;
}

macro_rules! elements {
    ($($element:ty: $code:literal;)+) => {$(
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
