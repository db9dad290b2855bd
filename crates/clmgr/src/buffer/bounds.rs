//! Checks of lengths and ranges.

use crate::error::{Error, Result};

/// The byte range of `count` elements from `offset` on in a buffer of `len`, or an error.
pub(super) fn byte_range<T>(len: usize, offset: usize, count: usize) -> Result<std::ops::Range<usize>> {
    match offset.checked_add(count) {
        // A buffer's bytes fit into the address space, so those of a part do too.
        Some(end) if end <= len => Ok(offset * size_of::<T>()..end * size_of::<T>()),
        _ => Err(Error::OutOfRange { offset, count, len }),
    }
}

/// Checks that `got` elements were passed where `expected` are needed.
pub(super) fn same_length(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        Ok(())
    } else {
        Err(Error::LengthMismatch { what, expected, got })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_outside_a_buffer_are_refused() {
        assert_eq!(byte_range::<f32>(10, 2, 3).unwrap(), 8..20);
        assert_eq!(byte_range::<f32>(10, 10, 0).unwrap(), 40..40);
        assert!(byte_range::<f32>(10, 10, 1).is_err());
        assert!(byte_range::<f32>(10, usize::MAX, 2).is_err());
    }
}
