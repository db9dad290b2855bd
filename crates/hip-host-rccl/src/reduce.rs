//! Sums and the like over the ranks' elements.

use half::{bf16, f16};
use rccl_sys::{ncclDataType_t, ncclRedOp_t};

/// An element and how it is reduced.
trait Number: Copy {
    fn reduce(op: ncclRedOp_t, values: impl Iterator<Item = Self>, ranks: usize) -> Option<Self>;
}

macro_rules! integers {
    ($($number:ty)*) => {$(
        impl Number for $number {
            fn reduce(op: ncclRedOp_t, values: impl Iterator<Item = Self>, ranks: usize) -> Option<Self> {
                match op {
                    ncclRedOp_t::ncclSum => values.reduce(Self::wrapping_add),
                    ncclRedOp_t::ncclProd => values.reduce(Self::wrapping_mul),
                    ncclRedOp_t::ncclMax => values.max(),
                    ncclRedOp_t::ncclMin => values.min(),
                    // The sum wraps before it is divided, as in the real library. More ranks than the type counts are
                    // no use case.
                    ncclRedOp_t::ncclAvg => Some(values.reduce(Self::wrapping_add)? / Self::try_from(ranks).ok()?),
                    _ => None,
                }
            }
        }
    )*};
}
integers! { i8 u8 i32 u32 i64 u64 }

macro_rules! floats {
    ($($number:ty as $wide:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $number {
            fn reduce(op: ncclRedOp_t, values: impl Iterator<Item = Self>, ranks: usize) -> Option<Self> {
                let values = values.map($widen);
                let result: $wide = match op {
                    ncclRedOp_t::ncclSum => values.reduce(|a, b| a + b)?,
                    ncclRedOp_t::ncclProd => values.reduce(|a, b| a * b)?,
                    ncclRedOp_t::ncclMax => values.reduce(<$wide>::max)?,
                    ncclRedOp_t::ncclMin => values.reduce(<$wide>::min)?,
                    ncclRedOp_t::ncclAvg => values.reduce(|a, b| a + b)? / ranks as $wide,
                    _ => return None,
                };
                Some($narrow(result))
            }
        }
    )*};
}
floats! {
    f32 as f32, |value| value, |value| value;
    f64 as f64, |value| value, |value| value;
    f16 as f32, f16::to_f32, f16::from_f32;
    bf16 as f32, bf16::to_f32, bf16::from_f32;
}

/// Element by element over the ranks' equally long bytes, in the order of the ranks. `None` for a type or an operation
/// that cannot be reduced.
pub(crate) fn reduce(datatype: ncclDataType_t, op: ncclRedOp_t, inputs: &[&[u8]]) -> Option<Vec<u8>> {
    macro_rules! over {
        ($number:ty) => {
            elements::<$number, { size_of::<$number>() }>(op, inputs, <$number>::from_ne_bytes, <$number>::to_ne_bytes)
        };
    }
    match datatype {
        ncclDataType_t::ncclInt8 => over!(i8),
        ncclDataType_t::ncclUint8 => over!(u8),
        ncclDataType_t::ncclInt32 => over!(i32),
        ncclDataType_t::ncclUint32 => over!(u32),
        ncclDataType_t::ncclInt64 => over!(i64),
        ncclDataType_t::ncclUint64 => over!(u64),
        ncclDataType_t::ncclFloat16 => over!(f16),
        ncclDataType_t::ncclFloat32 => over!(f32),
        ncclDataType_t::ncclFloat64 => over!(f64),
        ncclDataType_t::ncclBfloat16 => over!(bf16),
        _ => None,
    }
}

fn elements<T: Number, const N: usize>(
    op: ncclRedOp_t,
    inputs: &[&[u8]],
    read: fn([u8; N]) -> T,
    write: fn(T) -> [u8; N],
) -> Option<Vec<u8>> {
    let (first, _) = inputs.first()?.as_chunks::<N>();
    let mut result = Vec::with_capacity(first.len() * N);
    for at in 0..first.len() {
        let values = inputs.iter().map(|input| read(input.as_chunks::<N>().0[at]));
        result.extend(write(T::reduce(op, values, inputs.len())?));
    }
    Some(result)
}

/// Whether [`reduce`] can do it.
pub(crate) fn is_known(datatype: ncclDataType_t, op: ncclRedOp_t) -> bool {
    reduce(datatype, op, &[&[0; 8]]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_sums_are_rounded_once() {
        // 2048 + 1 + 1 is 2048 where each step is rounded to 11 bits.
        let inputs = [2048.0, 1.0, 1.0].map(|value| f16::from_f32(value).to_ne_bytes());
        let inputs: Vec<&[u8]> = inputs.iter().map(|bytes| &bytes[..]).collect();
        let sum = reduce(ncclDataType_t::ncclFloat16, ncclRedOp_t::ncclSum, &inputs).unwrap();
        assert_eq!(f16::from_ne_bytes([sum[0], sum[1]]).to_f32(), 2050.0);
    }

    #[test]
    fn integers_wrap_and_their_average_truncates() {
        let reduce = |op, values: [i8; 2]| {
            let inputs = values.map(i8::to_ne_bytes);
            let inputs: Vec<&[u8]> = inputs.iter().map(|bytes| &bytes[..]).collect();
            reduce(ncclDataType_t::ncclInt8, op, &inputs).unwrap()[0] as i8
        };
        assert_eq!(reduce(ncclRedOp_t::ncclSum, [127, 1]), -128);
        assert_eq!(reduce(ncclRedOp_t::ncclAvg, [-3, 0]), -1);
        assert_eq!(reduce(ncclRedOp_t::ncclProd, [-3, 5]), -15);
        assert_eq!(
            (
                reduce(ncclRedOp_t::ncclMax, [-3, 5]),
                reduce(ncclRedOp_t::ncclMin, [-3, 5])
            ),
            (5, -3)
        );
    }

    #[test]
    fn what_has_no_arithmetic_is_not_known() {
        assert!(!is_known(ncclDataType_t::ncclFloat8e4m3, ncclRedOp_t::ncclSum));
        assert!(!is_known(ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclNumOps));
        assert!(is_known(ncclDataType_t::ncclBfloat16, ncclRedOp_t::ncclAvg));
    }
}
