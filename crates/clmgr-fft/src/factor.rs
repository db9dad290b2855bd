//! Lengths and their factors.

use crate::error::{Error, Result};

/// The radices of a length, in the order of the passes. Those of two are at most `largest`, a power of two from 2 on: 8
/// or 16 where a pass goes through memory, up to 32 where a work-item holds the numbers.
///
/// A large radix means fewer passes over the data, and the largest come first, where the runs of
/// consecutive elements are shortest.
pub(crate) fn radices(len: usize, largest: usize) -> Result<Vec<usize>> {
    if len == 0 {
        return Err(Error::Cl(clmgr::Error::Zero {
            what: "the length of an FFT",
        }));
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
    let (twos, threes, fives) = (count(2), count(3), count(5));
    if rest != 1 {
        let factor = smallest_factor(rest);
        return Err(Error::Length {
            len,
            factor,
            next: next_supported(len),
        });
    }
    let mut radices = Vec::new();
    radices.extend(powers_of_two(twos, largest.ilog2()));
    radices.extend(std::iter::repeat_n(5, fives));
    radices.extend(std::iter::repeat_n(3, threes));
    radices.sort_unstable_by(|a, b| b.cmp(a));
    if radices.is_empty() {
        radices.push(1);
    }
    Ok(radices)
}

/// 2^`exponent` as the fewest radices of at most 2^`most`, as equal to each other as possible.
fn powers_of_two(exponent: usize, most: u32) -> impl Iterator<Item = usize> {
    let count = exponent.div_ceil(most as usize);
    (0..count).map(move |index| 1 << ((exponent + index) / count))
}

fn smallest_factor(number: usize) -> usize {
    (7..)
        .step_by(2)
        .take_while(|&candidate: &usize| candidate.checked_mul(candidate).is_some_and(|square| square <= number))
        .find(|&candidate| number.is_multiple_of(candidate))
        .unwrap_or(number)
}

/// The smallest length above `len` that has no factor but 2, 3 and 5; zero if there is none.
fn next_supported(len: usize) -> usize {
    let Some(least) = len.checked_add(1) else {
        return 0;
    };
    let mut best = 0;
    let mut fives: usize = 1;
    loop {
        let mut odd = fives;
        loop {
            let power = least.div_ceil(odd).checked_next_power_of_two();
            if let Some(found) = power.and_then(|power| power.checked_mul(odd))
                && (best == 0 || found < best)
            {
                best = found;
            }
            match odd.checked_mul(3) {
                Some(next) if odd < least => odd = next,
                _ => break,
            }
        }
        match fives.checked_mul(5) {
            Some(next) if fives < least => fives = next,
            _ => return best,
        }
    }
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
                if let Ok(radices) = radices(len, largest) {
                    assert_eq!(radices.iter().product::<usize>(), len);
                    for radix in radices {
                        assert!([1, 2, 3, 4, 5, 8, 16].contains(&radix) && radix <= largest);
                    }
                }
            }
        }
        assert_eq!(radices(4000, 8).unwrap(), [8, 5, 5, 5, 4]);
        assert_eq!(radices(1 << 22, 16).unwrap(), [16, 16, 16, 16, 8, 8]);
    }

    #[test]
    fn another_factor_is_named_together_with_the_next_length() {
        let Err(Error::Length { factor, next, .. }) = radices(4000 * 7, 8) else {
            panic!("a factor of 7 was accepted");
        };
        assert_eq!((factor, next), (7, 28125));
        let Err(Error::Length { factor, next, .. }) = radices(2 * 11 * 31, 8) else {
            panic!("a factor of 11 was accepted");
        };
        assert_eq!((factor, next), (11, 720));
        let Err(Error::Length { factor, .. }) = radices(10007, 8) else {
            panic!("a prime was accepted");
        };
        assert_eq!(factor, 10007);
        assert!(matches!(radices(0, 8), Err(Error::Cl(clmgr::Error::Zero { .. }))));
        assert!(radices(usize::MAX, 8).is_err());
    }

    #[test]
    fn the_next_length_is_the_smallest() {
        for len in 1..3000usize {
            let expected = (len + 1..).find(|&next| radices_of(next)).unwrap();
            assert_eq!(next_supported(len), expected, "{len}");
        }
    }

    fn radices_of(mut len: usize) -> bool {
        for prime in [2, 3, 5] {
            while len.is_multiple_of(prime) {
                len /= prime;
            }
        }
        len == 1
    }

    #[test]
    fn a_split_suits_the_kernel() {
        assert_eq!(split(1 << 22, 4096), Some((2048, 2048)));
        assert_eq!(split(3usize.pow(10), 4096), None);
        let (height, width) = split(40000, 4096).unwrap();
        assert_eq!((height * width, height % 8), (40000, 0));
    }
}
