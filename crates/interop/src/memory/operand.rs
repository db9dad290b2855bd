//! Shared memory and its parts as operands: whatever takes a [`hip::DeviceMemory`] takes them.
//!
//! The access is that of the guards for HIP ([`Shared::hip`], [`Shared::hip_mut`] and those of parts) for as long as the
//! memory is borrowed. A call holds the borrow until its work is queued, so that every later access comes after it.

use bytemuck::Pod;
use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};

use super::{Part, PartMut, Shared};

/// Read access by reference, and by exclusive reference where there is one.
macro_rules! memory {
    ($(($($life:lifetime)?) $memory:ty;)+) => {$(
        impl<'m, $($life,)? T: Pod> DeviceMemory for $memory {
            type Element = T;

            fn len(&self) -> usize {
                (**self).len()
            }

            fn read_on<'s>(self, stream: &'s Stream) -> hip::Result<DeviceSlice<'s, T>>
            where
                Self: 's,
            {
                Ok(self.hip(stream)?.into_slice())
            }
        }
    )+};
}
memory! {
    () &'m Shared<T>;
    () &'m mut Shared<T>;
    ('p) &'m Part<'p, T>;
    ('p) &'m PartMut<'p, T>;
    ('p) &'m mut PartMut<'p, T>;
}

macro_rules! memory_mut {
    ($(($($life:lifetime)?) $memory:ty;)+) => {$(
        impl<'m, $($life,)? T: Pod> DeviceMemoryMut for $memory {
            fn write_on<'s>(self, stream: &'s Stream) -> hip::Result<DeviceSliceMut<'s, T>>
            where
                Self: 's,
            {
                Ok(self.hip_mut(stream)?.into_slice())
            }
        }
    )+};
}
memory_mut! {
    () &'m mut Shared<T>;
    ('p) &'m mut PartMut<'p, T>;
}
