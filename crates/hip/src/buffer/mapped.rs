//! Buffers of memory that is mapped and not allocated.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::{Backing, DeviceBuffer, Mapping};
use crate::stream::Uses;
use crate::{Device, Error, Result};

/// A buffer of a part of a mapping that `owner` releases.
///
/// # Safety
///
/// `bytes` bytes at `base` can be used by `device` until `owner` is dropped, in an order that the caller of the
/// buffer's maker vouches for.
pub(crate) unsafe fn view<T: Pod>(
    device: &Device,
    base: NonNull<c_void>,
    bytes: usize,
    offset: usize,
    len: usize,
    owner: Arc<dyn Mapping>,
) -> Result<DeviceBuffer<T>> {
    let end = len
        .checked_mul(size_of::<T>())
        .and_then(|part| part.checked_add(offset));
    let aligned = base.addr().get().wrapping_add(offset).is_multiple_of(align_of::<T>());
    if !aligned || end.is_none_or(|end| end > bytes) {
        return Err(Error::OutOfRange {
            start: offset,
            end: end.unwrap_or(usize::MAX),
            len: bytes,
        });
    }
    // SAFETY: the offset is inside the mapping, or just after it.
    let pointer = unsafe { base.cast::<u8>().add(offset) }.cast::<T>();
    let backing = Backing::Mapped(Some(owner));
    // SAFETY: inside the mapping, which the backing keeps; any bytes are plain data.
    Ok(unsafe { DeviceBuffer::from_backing(device, pointer, len, Uses::default(), backing) })
}
