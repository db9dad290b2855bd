//! What a call can use as device memory.

use crate::{
    DeviceBuffer, DeviceSlice, DeviceSliceMut, Error, ManagedBuffer, PinnedBuffer, Registered, RegisteredMut, Result,
    Stream,
};

/// Memory that a call can read: whatever gives a [`DeviceSlice`] for the call's stream.
///
/// A call that is generic over it takes the memory itself, on the stream that it runs on: `&DeviceBuffer`, other owners of
/// memory by reference, or a slice that was taken before.
///
/// Any type may implement it. What a call does rests on the slice and not on the implementation: a slice can only be
/// had from its owner, or by `unsafe` code that vouches for it. So code that takes memory checks the slice's stream, and
/// its length again.
///
/// ```
/// # use std::sync::Arc;
/// # // SAFETY: one platform's functions.
/// # let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }?;
/// # let device = runtime.device(0)?;
/// # let stream = device.stream()?;
/// fn first<M: hip::DeviceMemory<Element = f32>>(memory: M, stream: &hip::Stream) -> hip::Result<f32> {
///     let mut value = [0.0];
///     memory.read_on(stream)?.slice(..1)?.copy_to_slice(&mut value)?;
///     Ok(value[0])
/// }
///
/// let buffer = device.alloc_from(&stream, &[2.0, 3.0])?;
/// assert_eq!(first(&buffer, &stream)?, 2.0);
/// assert_eq!(first(buffer.on(&stream)?.slice(1..)?, &stream)?, 3.0);
/// # Ok::<(), hip::Error>(())
/// ```
pub trait DeviceMemory {
    /// The type of the elements.
    type Element;

    /// Number of elements, known without access.
    fn len(&self) -> usize;

    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements to read on `stream`, in order after whatever writes them.
    ///
    /// # Errors
    ///
    /// The stream can't use the memory, or the order can't be kept. A layer above puts its own error into
    /// [`Error::Memory`].
    fn read_on<'s>(self, stream: &'s Stream) -> Result<DeviceSlice<'s, Self::Element>>
    where
        Self: 's;
}

/// Memory that a call can read and write: whatever gives a [`DeviceSliceMut`] for the call's stream. See
/// [`DeviceMemory`].
pub trait DeviceMemoryMut: DeviceMemory {
    /// The elements to read and write on `stream`, in order after whatever uses them.
    ///
    /// # Errors
    ///
    /// As [`DeviceMemory::read_on`], or the memory can only be read.
    fn write_on<'s>(self, stream: &'s Stream) -> Result<DeviceSliceMut<'s, Self::Element>>
    where
        Self: 's;
}

/// That a slice was taken for this stream.
fn same_stream(call: &'static str, slice: &Stream, stream: &Stream) -> Result<()> {
    if slice == stream {
        return Ok(());
    }
    Err(Error::WrongStream {
        call,
        argument: "the slice".to_owned(),
    })
}

impl<'a, T> DeviceMemory for DeviceSlice<'a, T> {
    type Element = T;

    fn len(&self) -> usize {
        DeviceSlice::len(self)
    }

    fn read_on<'s>(self, stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
    where
        'a: 's,
    {
        same_stream("read_on", self.stream(), stream)?;
        Ok(self)
    }
}

impl<'a, T> DeviceMemory for DeviceSliceMut<'a, T> {
    type Element = T;

    fn len(&self) -> usize {
        DeviceSliceMut::len(self)
    }

    fn read_on<'s>(self, stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
    where
        'a: 's,
    {
        same_stream("read_on", self.stream(), stream)?;
        Ok(self.into_slice())
    }
}

impl<'a, T> DeviceMemoryMut for DeviceSliceMut<'a, T> {
    fn write_on<'s>(self, stream: &'s Stream) -> Result<DeviceSliceMut<'s, T>>
    where
        'a: 's,
    {
        same_stream("write_on", self.stream(), stream)?;
        Ok(self)
    }
}

/// By reference: `$on` takes it for reading, `$on_mut` for writing.
macro_rules! memory {
    ($(($($life:lifetime),*) $memory:ty => |$source:ident, $stream:ident| $on:expr, $on_mut:expr;)+) => {$(
        impl<'m, $($life,)* T> DeviceMemory for &'m $memory {
            type Element = T;

            fn len(&self) -> usize {
                (**self).len()
            }

            fn read_on<'s>(self, $stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
            where
                Self: 's,
            {
                let $source = self;
                $on
            }
        }

        impl<'m, $($life,)* T> DeviceMemory for &'m mut $memory {
            type Element = T;

            fn len(&self) -> usize {
                (**self).len()
            }

            fn read_on<'s>(self, stream: &'s Stream) -> Result<DeviceSlice<'s, T>>
            where
                Self: 's,
            {
                (&*self).read_on(stream)
            }
        }

        impl<'m, $($life,)* T> DeviceMemoryMut for &'m mut $memory {
            fn write_on<'s>(self, $stream: &'s Stream) -> Result<DeviceSliceMut<'s, T>>
            where
                Self: 's,
            {
                let $source = self;
                $on_mut
            }
        }
    )+};
}
memory! {
    () DeviceBuffer<T> => |buffer, stream| buffer.on(stream), buffer.on_mut(stream);
    () PinnedBuffer<T> => |buffer, stream| buffer.on(stream), buffer.on_mut(stream);
    () ManagedBuffer<T> => |buffer, stream| buffer.on(stream), buffer.on_mut(stream);
    ('r) Registered<'r, T> => |memory, stream| memory.on(stream), memory.on_mut(stream);
    ('l, 'r) RegisteredMut<'l, 'r, T> => |memory, stream| memory.on(stream), memory.on_mut(stream);
    ('a) DeviceSliceMut<'a, T> => |slice, stream| slice.as_slice().read_on(stream), slice.reborrow().write_on(stream);
}
