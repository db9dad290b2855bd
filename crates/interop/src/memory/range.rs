use std::ops::Range;

use crate::{Error, Result};

/// Refuses a range without elements, or that does not lie in `0..len`.
pub(super) fn check_range(range: &Range<usize>, len: usize) -> Result<()> {
    if range.start > range.end || range.end > len {
        return Err(Error::OutOfRange {
            range: range.clone(),
            len,
        });
    }
    match range.is_empty() {
        true => Err(Error::Empty),
        false => Ok(()),
    }
}

/// As [`check_range`], for `count` elements from `offset` on.
pub(super) fn check_part(offset: usize, count: usize, len: usize) -> Result<()> {
    check_range(&(offset..offset.saturating_add(count)), len)
}

/// The bytes of elements that lie in a buffer.
pub(super) fn bytes<T>(range: &Range<usize>) -> Range<usize> {
    range.start * size_of::<T>()..range.end * size_of::<T>()
}
