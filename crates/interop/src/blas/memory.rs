use bytemuck::Pod;
use hip::{DeviceBuffer, DeviceSlice, DeviceSliceMut, Stream};

use crate::{Part, PartMut, Result, Shared};

/// Memory that a call may read: `&Shared<T>`, a [`Part`] or [`PartMut`] of one by reference, or
/// `&hip::DeviceBuffer<T>`.
pub trait Memory: sealed::Take<<Self as Memory>::Element> {
    /// The type of the elements.
    type Element: Pod;
}

/// Memory that a call may read and write: `&mut Shared<T>`, `&mut` [`PartMut`], or `&mut hip::DeviceBuffer<T>`.
pub trait MemoryMut: sealed::TakeMut<<Self as MemoryMut>::Element> {
    /// The type of the elements.
    type Element: Pod;
}

pub(crate) mod sealed {
    use super::{DeviceSlice, DeviceSliceMut, Result, Stream};

    /// Public in name only: the crate does not export this module.
    pub trait Take<T> {
        /// Read access on the stream.
        fn take<'s>(self, stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
        where
            Self: 's;
    }

    pub trait TakeMut<T> {
        /// Read and write access on the stream.
        fn take_mut<'s>(self, stream: &'s Stream) -> Result<DeviceSliceMut<'s, T>>
        where
            Self: 's;
    }
}

macro_rules! memory {
    ($(($($life:lifetime),*) $memory:ty => |$source:ident, $stream:ident| $take:expr;)+) => {$(
        impl<$($life,)* T: Pod> Memory for $memory {
            type Element = T;
        }

        impl<$($life,)* T: Pod> sealed::Take<T> for $memory {
            fn take<'s>(self, $stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
            where
                Self: 's,
            {
                let $source = self;
                $take
            }
        }
    )+};
}
memory! {
    ('m) &'m Shared<T> => |shared, stream| Ok(shared.hip(stream)?.into_slice());
    ('m, 'p) &'m Part<'p, T> => |part, stream| Ok(part.hip(stream)?.into_slice());
    ('m, 'p) &'m PartMut<'p, T> => |part, stream| Ok(part.hip(stream)?.into_slice());
    ('m) &'m DeviceBuffer<T> => |buffer, stream| Ok(buffer.on(stream)?);
}

macro_rules! memory_mut {
    ($(($($life:lifetime),*) $memory:ty => |$source:ident, $stream:ident| $take:expr;)+) => {$(
        impl<$($life,)* T: Pod> MemoryMut for $memory {
            type Element = T;
        }

        impl<$($life,)* T: Pod> sealed::TakeMut<T> for $memory {
            fn take_mut<'s>(self, $stream: &'s Stream) -> Result<DeviceSliceMut<'s, T>>
            where
                Self: 's,
            {
                let $source = self;
                $take
            }
        }
    )+};
}
memory_mut! {
    ('m) &'m mut Shared<T> => |shared, stream| Ok(shared.hip_mut(stream)?.into_slice());
    ('m, 'p) &'m mut PartMut<'p, T> => |part, stream| Ok(part.hip_mut(stream)?.into_slice());
    ('m) &'m mut DeviceBuffer<T> => |buffer, stream| Ok(buffer.on_mut(stream)?);
}
