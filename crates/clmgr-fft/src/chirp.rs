//! Bluestein's method: the transform of any length n as a convolution, which transforms of a longer length make.
//!
//! With c[k] = exp(-πi k²/n) forward, k n = (k² + n² - (n - k)²) / 2 turns X[k] = Σ x[j] exp(-2πi j k / n) into
//! X[k] = c[k] Σ (x[j] c[j]) / c[k - j]. The sum is a circular convolution with 1/c of any length from 2 n - 1 on.

use clmgr::C32;
use num_complex::Complex64;

use crate::Direction;
use crate::tables::exact_root;

/// Factors of Bluestein's method, computed in double precision and rounded once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Chirp {
    /// c[k] times a scale, for all k of a length.
    Signal {
        len: usize,
        direction: Direction,
        scale: f32,
    },
    /// The transform of 1/c, laid on a circle, divided by the circle's length.
    Spectrum {
        len: usize,
        convolution: usize,
        direction: Direction,
    },
}

impl Chirp {
    /// The number of factors.
    pub fn len(self) -> usize {
        match self {
            Self::Signal { len, .. } => len,
            Self::Spectrum { convolution, .. } => convolution,
        }
    }

    pub fn table(self) -> Vec<C32> {
        let factors = match self {
            Self::Signal { len, direction, scale } => {
                let factors = (0..len).map(|k| chirp(k, len, direction) * f64::from(scale));
                factors.collect()
            }
            Self::Spectrum {
                len,
                convolution,
                direction,
            } => spectrum(len, convolution, direction),
        };
        let rounded = factors
            .iter()
            .map(|factor| C32::new(factor.re as f32, factor.im as f32));
        rounded.collect()
    }
}

/// exp(∓πi `k`²/`len`).
fn chirp(k: usize, len: usize, direction: Direction) -> Complex64 {
    // In integers: k² has more digits than a double.
    let (k, turn) = (k as u64, 2 * len as u64);
    exact_root(k * k % turn, turn, direction)
}

fn spectrum(len: usize, convolution: usize, direction: Direction) -> Vec<Complex64> {
    let mut circle = vec![Complex64::default(); convolution];
    for k in 0..len {
        let factor = chirp(k, len, direction).conj();
        circle[k] = factor;
        circle[(convolution - k) % convolution] = factor;
    }
    let roots: Vec<Complex64> = (0..convolution as u64)
        .map(|turn| exact_root(turn, convolution as u64, Direction::Forward))
        .collect();
    let transform = transform(&circle, 1, &roots);
    transform.iter().map(|value| value / convolution as f64).collect()
}

/// The forward transform of every `step`th of `values`. `roots` are those of all values' number.
fn transform(values: &[Complex64], step: usize, roots: &[Complex64]) -> Vec<Complex64> {
    let len = values.len().div_ceil(step);
    let radix = match len {
        0 | 1 => return values.iter().take(1).copied().collect(),
        _ => (2..).find(|&radix| len.is_multiple_of(radix)).unwrap_or(len),
    };
    let parts: Vec<Vec<Complex64>> = (0..radix)
        .map(|part| transform(&values[part * step..], step * radix, roots))
        .collect();
    let part_len = len / radix;
    let value = |k: usize| {
        let terms = parts.iter().enumerate();
        terms
            .map(|(part, values)| values[k % part_len] * roots[part * k % len * step])
            .sum()
    };
    (0..len).map(value).collect()
}

/// The shortest length for the convolution that is 1, 3 or 5 times a power of two: those are fast on every device.
pub(crate) fn convolution(len: usize) -> Option<usize> {
    let least = len.checked_mul(2)? - 1;
    let fits = |odd: usize| least.div_ceil(odd).checked_next_power_of_two()?.checked_mul(odd);
    let shortest = [1, 3, 5].into_iter().filter_map(fits).min()?;
    u32::try_from(shortest).is_ok().then_some(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_of_the_host_is_the_sum_that_defines_it() {
        for len in [1usize, 2, 6, 15, 24, 40] {
            let values: Vec<Complex64> = (0..len)
                .map(|i| Complex64::new((i * 7 % 5) as f64, (i * 3 % 7) as f64))
                .collect();
            let root = |turn: usize| exact_root(turn as u64, len as u64, Direction::Forward);
            let roots: Vec<Complex64> = (0..len).map(root).collect();
            for (k, found) in transform(&values, 1, &roots).iter().enumerate() {
                let expected: Complex64 = values
                    .iter()
                    .enumerate()
                    .map(|(i, value)| value * root(i * k % len))
                    .sum();
                assert!((found - expected).norm() < 1e-12 * len as f64, "{len}: {k}");
            }
        }
    }

    /// In floating point, k² of this length has lost the bits that decide the angle.
    #[test]
    fn a_long_chirp_is_exact() {
        let (len, k) = (4_000_000_007usize, 3_999_999_999usize);
        // k = len - 8, so k² = 64 - 16 len + len², and len is odd: half a turn more than 64.
        let found = chirp(k, len, Direction::Forward);
        let angle = -std::f64::consts::PI * (64.0 / len as f64 + 1.0);
        assert!((found - Complex64::from_polar(1.0, angle)).norm() < 1e-14, "{found}");
    }

    #[test]
    fn a_convolution_has_room_and_at_most_a_third_more() {
        for len in 1..20_000 {
            let found = convolution(len).unwrap();
            assert!(found >= 2 * len - 1, "{len}");
            assert!(len < 4 || found * 3 < (2 * len - 1) * 4 + 12, "{len}: {found}");
            let odd = found >> found.trailing_zeros();
            assert!([1, 3, 5].contains(&odd));
        }
        assert_eq!(convolution(1 << 31), None);
        assert_eq!(convolution(usize::MAX), None);
    }
}
