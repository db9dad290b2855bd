//! What memory must be to hold elements: their bytes, an address, and its alignment.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::{Error, Result};

/// Bytes of `len` elements, at most `isize::MAX` as for every Rust object.
pub(crate) fn byte_size<T>(len: usize) -> Result<usize> {
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(bytes),
        _ => Err(Error::TooLarge {
            elements: len,
            element_bytes: size_of::<T>(),
        }),
    }
}

/// Refuses an address that is misaligned for the elements: a type may need more alignment than an allocator provides.
pub(crate) fn aligned<T>(pointer: NonNull<T>, call: &'static str) -> Result<()> {
    if pointer.is_aligned() {
        return Ok(());
    }
    Err(Error::Alignment {
        call,
        address: pointer.addr().get(),
        alignment: align_of::<T>(),
    })
}

/// An allocator that reports success must have returned an address.
pub(crate) fn not_null<T>(raw: *mut c_void, call: &'static str) -> Result<NonNull<T>> {
    NonNull::new(raw.cast()).ok_or_else(|| Error::Answer {
        call,
        answer: "null".to_owned(),
        expected: "an address",
    })
}
