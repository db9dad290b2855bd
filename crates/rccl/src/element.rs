use rccl_sys::{ncclDataType_t, ncclRedOp_t};

/// A number that RCCL knows: integers of 8, 32 and 64 bits, `f32`, `f64`, and with the feature `half` (on by default)
/// `half::f16` and `half::bf16`.
#[doc(alias = "ncclDataType_t")]
pub trait Element: Copy + Send + Sync + 'static + sealed::DataType {}

pub(crate) mod sealed {
    /// The number of a type. Public in name only: the crate does not export this module.
    pub trait DataType {
        const DATATYPE: rccl_sys::ncclDataType_t;
    }
}

macro_rules! elements {
    ($($(#[$when:meta])* $element:ty: $datatype:ident;)+) => {$(
        $(#[$when])*
        impl sealed::DataType for $element {
            const DATATYPE: ncclDataType_t = ncclDataType_t::$datatype;
        }
        $(#[$when])*
        impl Element for $element {}
    )+};
}
elements! {
    i8: ncclInt8;
    u8: ncclUint8;
    i32: ncclInt32;
    u32: ncclUint32;
    i64: ncclInt64;
    u64: ncclUint64;
    f32: ncclFloat32;
    f64: ncclFloat64;
    #[cfg(feature = "half")]
    half::f16: ncclFloat16;
    #[cfg(feature = "half")]
    half::bf16: ncclBfloat16;
}

/// How the ranks' elements become one.
#[doc(alias = "ncclRedOp_t")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReduceOp {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Product,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The sum divided by the number of ranks; integers are truncated.
    Average,
}

impl ReduceOp {
    pub(crate) fn raw(self) -> ncclRedOp_t {
        match self {
            Self::Sum => ncclRedOp_t::ncclSum,
            Self::Product => ncclRedOp_t::ncclProd,
            Self::Max => ncclRedOp_t::ncclMax,
            Self::Min => ncclRedOp_t::ncclMin,
            Self::Average => ncclRedOp_t::ncclAvg,
        }
    }
}
