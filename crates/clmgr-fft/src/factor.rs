//! Lengths and their factors.

/// The radices of a length, in the order of the passes. Those of two are at most `largest`, a power of two from 2 on: 8
/// or 16 where a pass goes through memory, up to 32 where a work-item holds the numbers.
///
/// A large radix means fewer passes over the data, and the largest come first, where the runs of
/// consecutive elements are shortest. None if the length has another prime factor than 2, 3, 5 and 7.
pub(crate) fn radices(len: usize, largest: usize) -> Option<Vec<usize>> {
    if len == 0 {
        return None;
    }
    let mut rest = len;
    let mut count = |prime| {
        let mut times = 0usize;
        while rest.is_multiple_of(prime) {
            rest /= prime;
            times += 1;
        }
        times
    };
    let (twos, threes, fives, sevens) = (count(2), count(3), count(5), count(7));
    if rest != 1 {
        return None;
    }
    let mut radices = Vec::new();
    radices.extend(powers_of_two(twos, largest.ilog2()));
    radices.extend(std::iter::repeat_n(7, sevens));
    radices.extend(std::iter::repeat_n(5, fives));
    radices.extend(std::iter::repeat_n(3, threes));
    radices.sort_unstable_by(|a, b| b.cmp(a));
    if radices.is_empty() {
        radices.push(1);
    }
    Some(radices)
}

/// Why a length has no radices.
pub(crate) fn not_smooth(len: usize) -> String {
    format!("the length {len} has another prime factor than 2, 3, 5 and 7; leave the way out, or use bluestein")
}

/// 2^`exponent` as the fewest radices of at most 2^`most`, as equal to each other as possible.
fn powers_of_two(exponent: usize, most: u32) -> impl Iterator<Item = usize> {
    let count = exponent.div_ceil(most as usize);
    (0..count).map(move |index| 1 << ((exponent + index) / count))
}

/// Two factors of `len`, as close to each other as possible, the first a multiple of eight and
/// both at least eight and at most `limit`.
pub(crate) fn split(len: usize, limit: usize) -> Option<(usize, usize)> {
    (1..=limit / 8)
        .map(|eighth| 8 * eighth)
        .filter(|height| len.is_multiple_of(*height))
        .map(|height| (height, len / height))
        .filter(|(_, width)| (8..=limit).contains(width))
        .min_by_key(|(height, width)| height.abs_diff(*width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radices_multiply_to_the_length() {
        for len in (1..5000usize).chain([1 << 22, 3 << 21, 625 << 15]) {
            for largest in [8, 16] {
                if let Some(radices) = radices(len, largest) {
                    assert_eq!(radices.iter().product::<usize>(), len);
                    for radix in radices {
                        assert!([1, 2, 3, 4, 5, 7, 8, 16].contains(&radix) && radix <= largest);
                    }
                }
            }
        }
        assert_eq!(radices(4000, 8).unwrap(), [8, 5, 5, 5, 4]);
        assert_eq!(radices(4 * 49 * 3, 8).unwrap(), [7, 7, 4, 3]);
        assert_eq!(radices(1 << 22, 16).unwrap(), [16, 16, 16, 16, 8, 8]);
    }

    #[test]
    fn a_length_has_radices_if_it_has_no_other_factor() {
        for len in 0..3000usize {
            let mut rest = len.max(1);
            for prime in [2, 3, 5, 7] {
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                }
            }
            assert_eq!(radices(len, 8).is_some(), len > 0 && rest == 1, "{len}");
        }
        assert_eq!(radices(usize::MAX, 8), None);
    }

    #[test]
    fn a_split_suits_the_kernel() {
        assert_eq!(split(1 << 22, 4096), Some((2048, 2048)));
        assert_eq!(split(3usize.pow(10), 4096), None);
        let (height, width) = split(40000, 4096).unwrap();
        assert_eq!((height * width, height % 8), (40000, 0));
    }
}
