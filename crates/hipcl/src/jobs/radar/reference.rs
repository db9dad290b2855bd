//! The same map in double precision on the host, from the raw samples, for comparison.
//!
//! Nothing of the pipeline's arithmetic is shared: the value between samples is Lagrange's formula, not a Farrow
//! filter's; the pulse compression is a sum over the replica, without a transform; a beam is a sum over the channels.

use std::f64::consts::PI;
use std::thread;

use super::peaks::{Found, Top};
use super::shape::Shape;
use crate::{C32, C64};

/// Peaks of the pipeline and of the reference may differ by this part of a cell.
const PLACE_TOLERANCE: f64 = 0.01;

/// Relative difference of two powers that single precision need not see.
const ROUNDING: f64 = 1e-4;

/// The double-precision map.
#[derive(Clone, Debug)]
pub struct Reference {
    shape: Shape,
    /// Mean power of each cell, `[beam][delay]`.
    power: Vec<f64>,
}

impl Reference {
    /// Of a batch `[block][channel][sample]`, whose channels come `skew` samples late.
    pub fn new(shape: &Shape, samples: &[C32], skew: &[f64]) -> Self {
        let per_block = shape.channels * shape.samples;
        let blocks: Vec<&[C32]> = samples.chunks_exact(per_block).collect();
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let share = blocks.len().div_ceil(workers).max(1);
        let add = |mut sum: Vec<f64>, more: Vec<f64>| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            sum
        };
        let zero = || vec![0.0; shape.cells()];
        let mut power = thread::scope(|scope| {
            let started: Vec<_> = blocks
                .chunks(share)
                .map(|blocks| {
                    scope.spawn(move || {
                        let powers = blocks.iter().map(|block| block_power(shape, block, skew));
                        powers.fold(zero(), add)
                    })
                })
                .collect();
            let ended = started.into_iter().map(|worker| match worker.join() {
                Ok(power) => power,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.fold(zero(), add)
        });
        power.iter_mut().for_each(|power| *power /= shape.blocks as f64);
        Self {
            shape: shape.clone(),
            power,
        }
    }

    /// Largest difference of the map `[beam][delay]` to this one, over the largest value of this one.
    pub fn map_error(&self, map: &[f32]) -> f64 {
        if map.len() != self.power.len() {
            return f64::INFINITY;
        }
        let largest = self.power.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let differences = map.iter().zip(&self.power).map(|(&power, expected)| {
            let difference = (f64::from(power) - expected).abs();
            // a NaN must not be lost in a maximum
            if difference.is_nan() { f64::INFINITY } else { difference }
        });
        differences.fold(0.0, f64::max) / largest
    }

    /// Largest relative difference of the targets' amplitudes to those of the tops here; infinite if a target is not a
    /// top here, lies elsewhere by more than a hundredth of a cell, or a stronger top is no target.
    pub fn target_error(&self, found: &Found) -> f64 {
        let tops = found.tops(&self.shape);
        let mut worst = 0.0_f64;
        for (top, peak) in tops.iter().zip(&found.peaks) {
            let (beam, delay) = (peak.beam as usize, peak.delay as usize);
            let Some(expected) = self.top(beam, delay) else {
                return f64::INFINITY;
            };
            let places = (top.delay - expected.delay).abs().max((top.beam - expected.beam).abs());
            let amplitude = ((top.power / expected.power).sqrt() - 1.0).abs();
            if places.is_nan() || places > PLACE_TOLERANCE || amplitude.is_nan() {
                return f64::INFINITY;
            }
            worst = worst.max(amplitude);
        }
        let weakest = tops
            .iter()
            .zip(&found.peaks)
            .map(|(_, peak)| f64::from(peak.power))
            .next_back();
        let limit = match weakest {
            Some(weakest) if tops.len() == found.peaks.len() => weakest,
            _ => found.limit(&self.shape),
        };
        let stronger = self.maxima().filter(|&power| power > (1.0 + ROUNDING) * limit).count();
        if stronger > tops.len() { f64::INFINITY } else { worst }
    }

    /// The power of each local maximum that rounding can't make none.
    fn maxima(&self) -> impl Iterator<Item = f64> + '_ {
        let delays = self.shape.samples;
        (0..self.shape.beams)
            .flat_map(move |beam| (1..delays - 1).map(move |delay| (beam, delay)))
            .filter(|&(beam, delay)| self.rises(beam, delay, 1.0 - ROUNDING))
            .map(|(beam, delay)| self.at(beam, delay))
    }

    /// Whether no cell around this one exceeds this multiple of its power.
    fn rises(&self, beam: usize, delay: usize, multiple: f64) -> bool {
        let limit = multiple * self.at(beam, delay);
        [beam + self.shape.beams - 1, beam, beam + 1]
            .into_iter()
            .flat_map(|near| [delay - 1, delay, delay + 1].map(|at| (near, at)))
            .filter(|&place| place != (beam, delay))
            .all(|(near, at)| self.at(near, at) <= limit)
    }

    fn at(&self, beam: usize, delay: usize) -> f64 {
        self.power[beam % self.shape.beams * self.shape.samples + delay]
    }

    /// The top of a local maximum, if the cell is one.
    fn top(&self, beam: usize, delay: usize) -> Option<Top> {
        let (beams, delays) = (self.shape.beams, self.shape.samples);
        if beam >= beams || delay == 0 || delay + 1 >= delays {
            return None;
        }
        let power = self.at(beam, delay);
        // of nearly equal ones, rounding may choose either
        if !self.rises(beam, delay, 1.0 + ROUNDING) {
            return None;
        }
        Some(Top::of(
            beam,
            delay,
            power,
            [self.at(beam, delay - 1), self.at(beam, delay + 1)],
            [self.at(beam + beams - 1, delay), self.at(beam + 1, delay)],
        ))
    }
}

/// Power of one block's cells.
fn block_power(shape: &Shape, block: &[C32], skew: &[f64]) -> Vec<f64> {
    let taper = shape.taper();
    let replica: Vec<C64> = (0..shape.pulse)
        .map(|n| shape.chirp(n as f64).conj() * shape.replica_weight(n) / shape.gain())
        .collect();
    let rows: Vec<Vec<C64>> = block
        .chunks_exact(shape.samples)
        .zip(skew)
        .map(|(row, &skew)| {
            let aligned: Vec<C64> = (0..shape.samples)
                .map(|n| between(row, n, skew) * f64::from(taper[n]))
                .collect();
            (0..shape.samples)
                .map(|delay| aligned[delay..].iter().zip(&replica).map(|(x, r)| x * r).sum())
                .collect()
        })
        .collect();
    let mut power = Vec::with_capacity(shape.cells());
    for beam in 0..shape.beams {
        let sine = shape.sine(beam as f64);
        let weights: Vec<C64> = (0..shape.channels)
            .map(|channel| C64::from_polar(shape.channel_weight(channel), -PI * channel as f64 * sine))
            .collect();
        power.extend((0..shape.samples).map(|delay| {
            let sum: C64 = rows.iter().zip(&weights).map(|(row, weight)| row[delay] * weight).sum();
            sum.norm_sqr()
        }));
    }
    power
}

/// Lagrange's cubic through the four samples around the time `n + skew`; 0 outside of the row.
fn between(row: &[C32], n: usize, skew: f64) -> C64 {
    let time = n as f64 + skew;
    let first = time.floor() as i64 - 1;
    let at = |i: i64| {
        let x = usize::try_from(i)
            .ok()
            .and_then(|i| row.get(i))
            .copied()
            .unwrap_or_default();
        C64::new(x.re.into(), x.im.into())
    };
    (0..4)
        .map(|j| {
            let weight: f64 = (0..4)
                .filter(|&k| k != j)
                .map(|k| (time - (first + k) as f64) / (j - k) as f64)
                .product();
            at(first + j) * weight
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::radar::scene::{Echo, Scene};

    #[test]
    fn a_cubic_between_samples_is_met_exactly_and_beyond_the_row_there_is_nothing() {
        let cubic = |t: f64| 0.25 * t.powi(3) - t * t + 2.0 * t - 1.0;
        let row: Vec<C32> = (0..20).map(|n| C32::new(cubic(n as f64) as f32, 1.0)).collect();
        for skew in [-1.75, -0.5, 0.0, 0.3, 1.0] {
            let expected = cubic(8.0 + skew);
            assert!((between(&row, 8, skew).re - expected).abs() < 1e-4, "{skew}");
        }
        assert_eq!(between(&row, 0, -5.0), C64::default());
        assert_eq!(between(&row, 19, 5.0), C64::default());
        assert_eq!(between(&row, 19, 0.0).im, 1.0);
    }

    #[test]
    fn one_echo_without_noise_has_its_amplitude_at_its_place() {
        let shape = Shape {
            blocks: 1,
            channels: 4,
            samples: 400,
            pulse: 128,
            beams: 16,
            ..Shape::default()
        };
        let scene = Scene {
            echoes: vec![Echo {
                delay: 120.0,
                sine: shape.sine(11.0),
                amplitude: 1e3,
            }],
            skew: vec![0.0, 1.0, -2.0, 0.0],
            seed: 1,
        };
        let samples = scene.batch(&shape, 0);
        let reference = Reference::new(&shape, &samples, &scene.skew);
        let power = reference.at(11, 120);
        // the noise is 60 dB below
        assert!((power.sqrt() / 1e3 - 1.0).abs() < 2e-3, "{power}");
        assert!(reference.maxima().all(|other| other <= power));
    }
}
