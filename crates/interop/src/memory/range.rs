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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_elements_and_lies_in_the_buffer() {
        for (range, len) in [(0..1, 1), (0..4, 4), (3..4, 4), (1..3, 4)] {
            assert!(check_range(&range, len).is_ok(), "{range:?} of {len}");
        }
        #[expect(clippy::reversed_empty_ranges, reason = "it is refused")]
        for (range, len) in [
            (3..2, 4),
            (0..5, 4),
            (4..5, 4),
            (usize::MAX - 1..usize::MAX, 4),
            (5..4, 4),
        ] {
            let error = check_range(&range, len).expect_err("outside");
            assert!(matches!(error, Error::OutOfRange { .. }), "{range:?} of {len}: {error}");
        }
        for at in [0, 2, 4] {
            assert!(matches!(check_range(&(at..at), 4), Err(Error::Empty)));
        }
    }

    #[test]
    fn a_part_ends_in_the_buffer() {
        for (offset, count) in [(0, 4), (3, 1)] {
            assert!(check_part(offset, count, 4).is_ok(), "{offset} {count}");
        }
        for (offset, count) in [(0, 5), (4, 1), (usize::MAX, 1), (1, usize::MAX)] {
            let error = check_part(offset, count, 4).expect_err("outside");
            assert!(matches!(error, Error::OutOfRange { .. }), "{offset} {count}: {error}");
        }
        assert!(matches!(check_part(2, 0, 4), Err(Error::Empty)));
        assert_eq!(bytes::<f32>(&(3..5)), 12..20);
    }
}
