//! Memory viewed as elements of another type.

use bytemuck::Pod;

use super::{DeviceSlice, DeviceSliceMut};
use crate::{Error, Result};

/// How many `U` as many bytes are as `len` of `T` at `address`.
fn recount<T, U>(call: &'static str, address: usize, len: usize) -> Result<usize> {
    let bytes = len * size_of::<T>();
    let count = match size_of::<U>() {
        0 => (bytes == 0).then_some(0),
        size => bytes.is_multiple_of(size).then_some(bytes / size),
    };
    match count {
        Some(count) if address.is_multiple_of(align_of::<U>()) => Ok(count),
        _ => Err(Error::Cast {
            call,
            bytes,
            element_bytes: size_of::<U>(),
            alignment: align_of::<U>(),
        }),
    }
}

impl<'a, T: Pod> DeviceSlice<'a, T> {
    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::Cast`]: the bytes are not a whole number of elements, or do not begin where one may.
    pub fn cast<U: Pod>(self) -> Result<DeviceSlice<'a, U>> {
        let len = recount::<T, U>("DeviceSlice::cast", self.as_ptr().addr(), self.len())?;
        let (pointer, origin) = (self.as_ptr().cast(), self.origin());
        // Any bytes are plain data.
        Ok(DeviceSlice::with_origin(pointer, len, self.stream(), origin))
    }
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// [`Error::Cast`]: the bytes are not a whole number of elements, or do not begin where one may.
    pub fn cast<U: Pod>(mut self) -> Result<DeviceSliceMut<'a, U>> {
        let pointer = self.as_mut_ptr();
        let len = recount::<T, U>("DeviceSliceMut::cast", pointer.addr(), self.len())?;
        let (stream, origin) = (self.stream(), self.origin());
        // Any bytes are plain data.
        Ok(DeviceSliceMut::with_origin(pointer.cast(), len, stream, origin))
    }
}

#[cfg(test)]
mod tests {
    use super::recount;

    #[test]
    fn only_whole_aligned_elements_are_counted() {
        assert_eq!(recount::<u8, u32>("", 16, 12).unwrap(), 3);
        assert_eq!(recount::<u32, u8>("", 4, 3).unwrap(), 12);
        assert_eq!(recount::<u8, u32>("", 16, 0).unwrap(), 0);
        assert!(recount::<u8, u32>("", 16, 13).is_err());
        assert!(recount::<u8, u32>("", 18, 12).is_err());
        assert!(recount::<u8, [u8; 0]>("", 16, 1).is_err());
        assert_eq!(recount::<[u8; 0], u8>("", 16, 5).unwrap(), 0);
    }
}
