//! Factors (roots of unity), computed in double precision and rounded once.

use clmgr::C32;
use num_complex::Complex64;

use crate::Direction;

/// The number of bits of an index that the fine table of a pair covers.
pub(crate) const FINE_BITS: u32 = 11;

/// exp(∓2πi `turn`/`len`), minus for the forward direction.
pub(crate) fn exact_root(turn: u64, len: u64, direction: Direction) -> Complex64 {
    // Whole turns are taken off before the angle is formed: its error grows with its size.
    let turn = turn % len;
    let angle = std::f64::consts::TAU * turn as f64 / len as f64;
    let sign = match direction {
        Direction::Forward => -1.0,
        Direction::Inverse => 1.0,
    };
    Complex64::new(angle.cos(), sign * angle.sin())
}

/// The same, rounded.
fn root(turn: u64, len: u64, direction: Direction) -> C32 {
    let exact = exact_root(turn, len, direction);
    C32::new(exact.re as f32, exact.im as f32)
}

/// Where the factors of each pass begin, in floats, and the factors themselves.
pub(crate) struct PassFactors {
    pub offsets: Vec<usize>,
    pub data: Vec<f32>,
}

/// The factors w^(p j) of each pass but the last, by p and then j = 1..radix. In the wide form each is
/// (re, re, -im, im), else (re, im).
pub(crate) fn pass_factors(radices: &[usize], direction: Direction, wide: bool) -> PassFactors {
    let mut rest: usize = radices.iter().product();
    let mut offsets = Vec::new();
    let mut data = Vec::new();
    for &radix in radices {
        offsets.push(data.len());
        let m = rest / radix;
        if m > 1 {
            for p in 0..m {
                for j in 1..radix {
                    let w = root((p * j) as u64, rest as u64, direction);
                    if wide {
                        data.extend([w.re, w.re, -w.im, w.im]);
                    } else {
                        data.extend([w.re, w.im]);
                    }
                }
            }
        }
        rest = m;
    }
    // A table is a buffer, and a buffer is never empty.
    if data.is_empty() {
        data.push(0.0);
    }
    PassFactors { offsets, data }
}

/// All roots of `len`, by turn.
pub(crate) fn roots(len: usize, direction: Direction) -> Vec<C32> {
    first_roots(len, len, direction)
}

/// The first `count` of them.
pub(crate) fn first_roots(count: usize, len: usize, direction: Direction) -> Vec<C32> {
    (0..count as u64)
        .map(|turn| root(turn, len as u64, direction))
        .collect()
}

/// The factors of the first pass of a row, of radix 8: by j = 1..8 and then p.
pub(crate) fn row_factors(len: usize, direction: Direction) -> Vec<C32> {
    let m = len / 8;
    (1..8)
        .flat_map(|j| (0..m).map(move |p| root((p * j) as u64, len as u64, direction)))
        .collect()
}

/// A pair of tables whose product gives any root of `len`.
pub(crate) fn coarse_and_fine(len: usize, direction: Direction) -> (Vec<C32>, Vec<C32>) {
    let fine = 1u64 << FINE_BITS;
    let coarse = (len as u64).div_ceil(fine);
    (
        (0..coarse).map(|i| root(i * fine, len as u64, direction)).collect(),
        (0..fine).map(|i| root(i, len as u64, direction)).collect(),
    )
}

/// The factors between the steps of a split for eight neighbouring columns, by row.
pub(crate) fn beside_factors(height: usize, len: usize, direction: Direction) -> Vec<C32> {
    (0..height)
        .flat_map(|row| (0..8).map(move |column| root((row * column) as u64, len as u64, direction)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_right_to_the_last_bit_at_the_quarters() {
        for (turn, expected) in [(0, (1.0, 0.0)), (1, (0.0, -1.0)), (2, (-1.0, 0.0)), (3, (0.0, 1.0))] {
            let w = root(turn * 5, 20, Direction::Forward);
            assert!(
                (w.re - expected.0).abs() < 1e-15 && (w.im - expected.1).abs() < 1e-15,
                "{turn}: {w}"
            );
        }
    }

    #[test]
    fn a_coarse_and_a_fine_root_make_any_root() {
        let len = 3usize.pow(3) * 5usize.pow(4);
        let (coarse, fine) = coarse_and_fine(len, Direction::Inverse);
        for turn in (0..len).step_by(97) {
            let made = coarse[turn >> FINE_BITS] * fine[turn & ((1 << FINE_BITS) - 1)];
            let expected = root(turn as u64, len as u64, Direction::Inverse);
            assert!((made - expected).norm() < 3e-7);
        }
    }
}
