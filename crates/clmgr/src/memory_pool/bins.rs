//! The sizes that a pool keeps.

/// Blocks are not smaller than this, since drivers allocate no less.
pub(super) const SMALLEST: usize = 256;
/// The bits behind the leading one that a size keeps.
const MANTISSA: u32 = 4;

/// The bin of a request: the least size not below it whose binary form is five digits and zeros.
///
/// A block is larger than its request by less than one part in sixteen, except that no block is
/// smaller than [`SMALLEST`]. None if there is no such size.
pub(super) fn bin_bytes(request: usize) -> Option<usize> {
    let request = request.max(SMALLEST);
    let step = 1usize << (request.ilog2() - MANTISSA);
    request.checked_next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bin_wastes_at_most_a_sixteenth(request in SMALLEST..=usize::MAX / 2) {
            let bytes = bin_bytes(request).unwrap();
            prop_assert!(bytes >= request);
            prop_assert!((bytes - request) as u128 * 16 <= request as u128);
            prop_assert_eq!(bin_bytes(bytes), Some(bytes), "a bin is its own bin");
        }

        #[test]
        fn a_larger_request_never_has_a_smaller_bin(a in 0..1usize << 40, b in 0..1usize << 40) {
            let (small, large) = (a.min(b), a.max(b));
            prop_assert!(bin_bytes(small) <= bin_bytes(large));
        }
    }

    #[test]
    fn a_request_beyond_the_last_bin_has_none() {
        assert_eq!(bin_bytes(usize::MAX), None);
        assert_eq!(bin_bytes(0), Some(SMALLEST));
    }
}
