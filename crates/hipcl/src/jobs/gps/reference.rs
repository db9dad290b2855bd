//! The same power map in double precision on the host, from the raw samples, for comparison.
//!
//! Nothing is shared with the pipeline: the codes come from the delay table of the specification instead of its tap
//! table, the phase of the wipe-off from `f64` cycles, and the blocks of a sub-interval are combined before the inverse
//! transform instead of after it, which is the same by linearity and takes other roundings.

use std::f64::consts::TAU;
use std::thread;

use rustfft::FftPlanner;

use super::detect::Peak;
use super::geometry::{Geometry, Parameters};
use crate::{C32, C64};

/// Delay of the second register's sequence against the first's, in chips (IS-GPS-200, table 3-Ia), PRN 1 first.
const G2_DELAY: [usize; 32] = [
    5, 6, 7, 8, 17, 18, 139, 140, 141, 251, 252, 254, 255, 256, 257, 258, 469, 470, 471, 472, 473, 474, 509, 512, 513,
    514, 515, 516, 859, 860, 861, 862,
];

/// Compares `measured`, `[prn][row][delay]`, with the map computed here: the largest difference over the largest value
/// of this map.
///
/// `samples` are the raw ones; the power is in units of the noise power of one sub-interval, if all of the signal were
/// noise.
pub fn max_rel_error(parameters: &Parameters, samples: &[C32], measured: &[f32]) -> f64 {
    let map = Map::new(parameters, samples);
    let cells = map.spectra.len() / map.sub_intervals;
    if measured.len() != 32 * cells {
        return f64::INFINITY;
    }
    let halves = measured.split_at(16 * cells);
    let worker = |first: usize, measured: &[f32]| -> (f64, f64) {
        measured
            .chunks_exact(cells)
            .enumerate()
            .fold((0.0, 0.0), |(error, largest), (index, measured)| {
                map.satellite(first + index).iter().zip(measured).fold(
                    (error, largest),
                    |(error, largest), (&expected, &measured)| {
                        let difference = (f64::from(measured) - expected).abs();
                        // a NaN must not be lost in a maximum
                        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
                        (f64::max(error, difference), f64::max(largest, expected))
                    },
                )
            })
    };
    let (low, high) = thread::scope(|scope| {
        let high = scope.spawn(|| worker(16, halves.1));
        (worker(0, halves.0), high.join().unwrap_or((f64::INFINITY, 1.0)))
    });
    low.0.max(high.0) / low.1.max(high.1)
}

/// Compares `peaks`, PRN 1 first, with those of `map`, `[prn][row][delay]`: the largest difference of a power, over the
/// largest value of the satellite's map, or of a median, over the map's. They are equal where the kernels are right, as
/// they only select values.
pub fn max_peak_error(geometry: &Geometry, map: &[f32], peaks: &[Peak]) -> f64 {
    let cells = geometry.cells();
    if map.len() != peaks.len() * cells {
        return f64::INFINITY;
    }
    let errors = map
        .chunks_exact(cells)
        .zip(peaks)
        .map(|(map, peak)| peak_error(geometry, map, peak));
    errors.fold(0.0, f64::max)
}

fn peak_error(geometry: &Geometry, map: &[f32], peak: &Peak) -> f64 {
    let (rows, delays) = (geometry.rows(), geometry.block());
    if peak.row >= rows || peak.delay >= delays {
        return f64::INFINITY;
    }
    let at = |row: usize, delay: usize| map[row * delays + delay % delays];
    let largest = map.iter().copied().fold(0.0, f32::max);
    let beside = [delays - 1, 1].map(|step| at(peak.row, peak.delay + step));
    let around = [peak.row.checked_sub(1), Some(peak.row + 1).filter(|&row| row < rows)];
    let around = around.map(|row| row.map(|row| at(row, peak.delay)));
    let mut powers = vec![
        (peak.power, largest),
        (peak.power, at(peak.row, peak.delay)),
        (peak.beside[0], beside[0]),
        (peak.beside[1], beside[1]),
    ];
    for (measured, expected) in peak.around.into_iter().zip(around) {
        match (measured, expected) {
            (Some(measured), Some(expected)) => powers.push((measured, expected)),
            (None, None) => {}
            _ => return f64::INFINITY,
        }
    }
    let mut sorted = map.to_vec();
    let middle = sorted.len() / 2;
    let median = *sorted.select_nth_unstable_by(middle, f32::total_cmp).1;
    let relative = |measured: f32, expected: f32, to: f32| {
        if measured == expected {
            return 0.0;
        }
        let error = f64::from(measured - expected).abs() / f64::from(to);
        // A NaN must not be lost in a maximum.
        if error.is_nan() { f64::INFINITY } else { error }
    };
    let powers = powers
        .into_iter()
        .map(|(measured, expected)| relative(measured, expected, largest));
    powers.fold(relative(peak.median, median, median), f64::max)
}

/// What all satellites have in common.
struct Map {
    delays: usize,
    sub_intervals: usize,
    /// Spectra of the samples, moved to baseband and summed over a sub-interval: `[row][sub-interval][frequency]`.
    spectra: Vec<C64>,
}

impl Map {
    fn new(parameters: &Parameters, samples: &[C32]) -> Self {
        let Parameters {
            rate_hz,
            doppler_max_hz,
            doppler_step_hz,
            blocks,
            sub,
        } = *parameters;
        let delays = (rate_hz * 1e-3).round() as usize;
        let used = &samples[..blocks * delays];
        let mean_square = used
            .iter()
            .map(|x| f64::from(x.re).powi(2) + f64::from(x.im).powi(2))
            .sum::<f64>()
            / used.len() as f64;
        let gain = 1.0 / (mean_square * (delays * sub) as f64).sqrt();

        let steps = (doppler_max_hz / doppler_step_hz).ceil() as i32;
        let fine = (doppler_step_hz / (500.0 / sub as f64)).ceil() as i32;
        let forward = FftPlanner::new().plan_fft_forward(delays);
        let mut spectra = Vec::new();
        for step in -steps..=steps {
            let coarse_hz = f64::from(step) * doppler_step_hz;
            let mut blocks_at_baseband: Vec<C64> = used
                .iter()
                .enumerate()
                .map(|(n, x)| {
                    let cycles = (coarse_hz * (n as f64 / rate_hz)).fract();
                    C64::new(x.re.into(), x.im.into()) * C64::from_polar(gain, -TAU * cycles)
                })
                .collect();
            forward.process(&mut blocks_at_baseband);
            for bin in 0..fine {
                let fine_hz = (f64::from(bin) - 0.5 * f64::from(fine - 1)) * doppler_step_hz / f64::from(fine);
                for sub_interval in blocks_at_baseband.chunks_exact(sub * delays) {
                    let mut sum = vec![C64::default(); delays];
                    for (index, block) in sub_interval.chunks_exact(delays).enumerate() {
                        let turn = C64::from_polar(1.0, -TAU * fine_hz * 1e-3 * index as f64);
                        sum.iter_mut().zip(block).for_each(|(sum, x)| *sum += x * turn);
                    }
                    spectra.extend_from_slice(&sum);
                }
            }
        }
        Self {
            delays,
            sub_intervals: blocks / sub,
            spectra,
        }
    }

    /// The power of satellite `index` + 1, `[row][delay]`.
    fn satellite(&self, index: usize) -> Vec<f64> {
        let delays = self.delays;
        let mut planner = FftPlanner::new();
        let mut code: Vec<C64> = code(G2_DELAY[index], delays).into_iter().map(C64::from).collect();
        planner.plan_fft_forward(delays).process(&mut code);
        code.iter_mut().for_each(|value| *value = value.conj() / delays as f64);

        let inverse = planner.plan_fft_inverse(delays);
        let mut scratch = vec![C64::default(); inverse.get_inplace_scratch_len()];
        let mut correlation = vec![C64::default(); delays];
        let mut power = vec![0.0; self.spectra.len() / self.sub_intervals];
        let rows = power
            .chunks_exact_mut(delays)
            .zip(self.spectra.chunks_exact(self.sub_intervals * delays));
        for (row, spectra) in rows {
            for spectrum in spectra.chunks_exact(delays) {
                correlation
                    .iter_mut()
                    .zip(spectrum)
                    .zip(&code)
                    .for_each(|((c, x), s)| *c = x * s);
                inverse.process_with_scratch(&mut correlation, &mut scratch);
                row.iter_mut()
                    .zip(&correlation)
                    .for_each(|(power, c)| *power += c.norm_sqr());
            }
        }
        power
    }
}

/// A code period of `delays` samples; the second register's sequence is read `g2_delay` chips late.
fn code(g2_delay: usize, delays: usize) -> Vec<f64> {
    // x^10 + x^3 + 1 and x^10 + x^9 + x^8 + x^6 + x^3 + x^2 + 1 as recurrences of the output sequence
    let sequence = |lags: &[usize]| -> Vec<u8> {
        let mut bits = vec![1u8; 10];
        for n in 10..1023 {
            bits.push(lags.iter().fold(0, |sum, lag| sum ^ bits[n - lag]));
        }
        bits
    };
    let g1 = sequence(&[3, 10]);
    let g2 = sequence(&[2, 3, 6, 8, 9, 10]);
    (0..delays)
        .map(|n| {
            let chip = (n * 1023) / delays;
            if g1[chip] == g2[(chip + 1023 - g2_delay) % 1023] {
                1.0
            } else {
                -1.0
            }
        })
        .collect()
}
