//! From peaks to satellites.
//!
//! # Near and far
//! The codes are not orthogonal: a strong satellite shows in every other satellite's map, up to 21.1 dB below its own
//! peak, at its Doppler shift plus or minus whole kilohertz. So satellites are accepted from the strongest down, and a
//! weaker one has to exceed what noise *and* the accepted ones can put into its cell. What they put there is computed:
//! their codes, code phases, frequencies and powers are known by then. With `x` the threshold for noise alone, the
//! amplitudes `a_i` that the accepted satellites leave in the cell, and their powers `P_i` in units of the noise power
//! of one of `L` sub-intervals, the candidate's power has to exceed
//!
//! ```text
//! ( sqrt(x (1 + sum P_i / (4092 L))) + sum a_i )^2
//! ```
//!
//! The sum of amplitudes is the triangle inequality, so it holds for any phases. The factor at `x` stands for what the
//! prediction leaves out (bit edges of the accepted satellites inside a block, the receiver's filter, errors of the
//! estimates): a quarter of the mean power that a random code of 1023 chips would leave, as more noise.

use std::f64::consts::TAU;

use super::ca_code::{self, CHIPS, PRNS};
use super::geometry::Geometry;
use super::threshold;
use crate::outcome::Satellite;

/// The largest cell of a satellite's map, its neighbours, and the map's median. Powers are in one unit, whichever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Doppler row.
    pub row: usize,
    /// Delay in samples.
    pub delay: usize,
    /// Power of the cell.
    pub power: f32,
    /// Power one sample earlier and later.
    pub beside: [f32; 2],
    /// Power one row below and above; `None` at the edge of the map.
    pub around: [Option<f32>; 2],
    /// Median of the map.
    pub median: f32,
}

/// Limits of detection and the rule that applies them.
#[derive(Clone, Debug)]
pub struct Detector<'a> {
    geometry: &'a Geometry,
    noise_threshold: f64,
    median: f64,
}

/// Largest cross-correlation of two codes at any delay and any difference of whole kilohertz, over the autocorrelation,
/// as a power ratio: -21.08 dB.
pub const CROSS_CORRELATION: f64 = 0.0078;

/// Probability, in standard deviations of a normal variable, with which a satellite at the stated limit is missed: 1 %.
const MISS_DEVIATIONS: f64 = 2.33;

struct Accepted {
    prn: u8,
    code_phase: f64,
    doppler_hz: f64,
    power: f64,
    /// Amplitude in its own cell that one of unit amplitude would have.
    own: f64,
}

impl<'a> Detector<'a> {
    /// A detector that reports any false satellite with at most the probability `false_alarm` in a whole search.
    pub fn new(geometry: &'a Geometry, false_alarm: f64) -> Self {
        let sub_intervals = geometry.sub_intervals();
        Self {
            geometry,
            noise_threshold: threshold::power(sub_intervals, PRNS * geometry.cells(), false_alarm),
            median: threshold::median_power(sub_intervals),
        }
    }

    /// Peak over median that noise alone exceeds with at most the false-alarm probability.
    pub fn threshold(&self) -> f64 {
        self.noise_threshold / self.median
    }

    /// The satellites among `peaks` (PRN 1 first), the strongest first.
    pub fn satellites(&self, peaks: &[Peak]) -> Vec<Satellite> {
        let mut candidates: Vec<(u8, &Peak, f64)> = (1u8..)
            .zip(peaks)
            .map(|(prn, peak)| (prn, peak, f64::from(peak.power) / f64::from(peak.median) * self.median))
            .filter(|&(_, _, power)| power > self.noise_threshold)
            .collect();
        candidates.sort_by(|a, b| b.2.total_cmp(&a.2));

        let mut accepted: Vec<Accepted> = Vec::new();
        for (prn, peak, power) in candidates {
            if power <= self.required(&accepted, prn, peak) {
                continue;
            }
            let code_phase = self.code_phase(peak);
            let doppler_hz = self.doppler_hz(peak);
            let own = self.amplitude_in_cell(prn, code_phase, doppler_hz, prn, peak.row, peak.delay);
            accepted.push(Accepted {
                prn,
                code_phase,
                doppler_hz,
                power,
                own,
            });
        }
        accepted
            .into_iter()
            .map(|found| Satellite {
                prn: found.prn,
                doppler_hz: found.doppler_hz,
                code_phase_samples: found.code_phase,
                peak_over_median: found.power / self.median,
            })
            .collect()
    }

    /// Power that a candidate has to exceed beside those accepted so far.
    fn required(&self, accepted: &[Accepted], prn: u8, peak: &Peak) -> f64 {
        let block = self.geometry.block();
        let leaked: f64 = accepted
            .iter()
            .map(|strong| {
                // the strong satellite's code phase is known to a fraction of a sample only
                let in_cell = [block - 1, 0, 1]
                    .map(|offset| {
                        let delay = (peak.delay + offset) % block;
                        self.amplitude_in_cell(strong.prn, strong.code_phase, strong.doppler_hz, prn, peak.row, delay)
                    })
                    .into_iter()
                    .fold(0.0, f64::max);
                strong.power.sqrt() * in_cell / strong.own
            })
            .sum();
        let total = accepted.iter().map(|strong| strong.power).sum();
        ((self.noise_threshold * self.residual_noise(total)).sqrt() + leaked).powi(2)
    }

    /// Noise power beside satellites of `total` power that the prediction of their leakage does not cover.
    fn residual_noise(&self, total: f64) -> f64 {
        1.0 + total / (4 * CHIPS * self.geometry.sub_intervals()) as f64
    }

    /// What a satellite of amplitude 1 leaves in the cell (`row`, `delay`) of the map of `other`.
    fn amplitude_in_cell(&self, prn: u8, code_phase: f64, doppler_hz: f64, other: u8, row: usize, delay: usize) -> f64 {
        let (Some(signal), Some(replica)) = (ca_code::signs(prn), ca_code::signs(other)) else {
            return 0.0;
        };
        let geometry = self.geometry;
        let block = geometry.block();
        let coarse_hz = geometry.coarse_hz()[row / geometry.fine_hz().len()];
        let turn = TAU * (doppler_hz - coarse_hz) / geometry.rate_hz();
        let (mut re, mut im) = (0.0, 0.0);
        for n in 0..block {
            let received = ((n as f64 - code_phase) * CHIPS as f64 / block as f64).floor() as i64;
            let sign = signal[received.rem_euclid(CHIPS as i64) as usize]
                * replica[(n + block - delay) % block * CHIPS / block];
            let (sin, cos) = (turn * n as f64).sin_cos();
            re += f64::from(sign) * cos;
            im += f64::from(sign) * sin;
        }
        let in_block = re.hypot(im) / block as f64;

        let turn = TAU * (doppler_hz - geometry.row_hz(row)) * 1e-3;
        let (re, im) = (0..geometry.sub()).fold((0.0, 0.0), |(re, im), index| {
            let (sin, cos) = (turn * index as f64).sin_cos();
            (re + cos, im + sin)
        });
        in_block * re.hypot(im) / geometry.sub() as f64
    }

    /// Samples from the first sample to the beginning of a code period, in `0 .. block`.
    ///
    /// The correlation of rectangular chips is a triangle; three points of it give its tip.
    fn code_phase(&self, peak: &Peak) -> f64 {
        let [earlier, later] = peak.beside.map(|power| f64::from(power).sqrt());
        let top = f64::from(peak.power).sqrt();
        let height = top - earlier.min(later);
        let offset = if height > 0.0 {
            ((later - earlier) / (2.0 * height)).clamp(-0.5, 0.5)
        } else {
            0.0
        };
        (peak.delay as f64 + offset).rem_euclid(self.geometry.block() as f64)
    }

    /// Doppler shift in Hz: the tip of a parabola through three rows.
    fn doppler_hz(&self, peak: &Peak) -> f64 {
        let [Some(below), Some(above)] = peak.around.map(|power| power.map(f64::from)) else {
            return self.geometry.row_hz(peak.row);
        };
        let curvature = below - 2.0 * f64::from(peak.power) + above;
        let offset = if curvature < 0.0 {
            (0.5 * (below - above) / curvature).clamp(-0.5, 0.5)
        } else {
            0.0
        };
        self.geometry.row_hz(peak.row) + offset * self.geometry.row_step_hz()
    }

    /// The weakest satellite, in dB-Hz, that is missed with a probability of at most 1 % beside others of the strengths
    /// `others`.
    ///
    /// It may lie between the cells in the worst way, and a bit edge may take one whole sub-interval from it,
    /// whichever. The others are taken with all their power and no loss; their leakage into its cell with its mean over
    /// random codes and phases.
    pub fn weakest_cn0_db_hz(&self, others: &[f64]) -> f64 {
        let geometry = self.geometry;
        let sub_intervals = geometry.sub_intervals() as f64;
        let seconds = geometry.sub() as f64 * 1e-3;
        let powers: Vec<f64> = others
            .iter()
            .map(|cn0| sub_intervals * (10f64.powf(cn0 / 10.0) * seconds + 1.0))
            .collect();
        let total: f64 = powers.iter().sum();
        let strongest = powers.iter().copied().fold(0.0, f64::max);

        let threshold = (self.noise_threshold * self.residual_noise(total)).sqrt() + (total / CHIPS as f64).sqrt();
        // below the strongest one's cross-correlation its own peak is not the largest of its map
        let hidden = (strongest * CROSS_CORRELATION).sqrt() + self.median.sqrt();
        let power = threshold.max(hidden).powi(2);

        // the power has the mean signal + L and the variance 2 signal + L
        let mut signal = power;
        for _ in 0..50 {
            signal = power - sub_intervals + MISS_DEVIATIONS * (2.0 * signal + sub_intervals).sqrt();
        }
        let sinc_squared = |x: f64| {
            if x == 0.0 {
                1.0
            } else {
                ((TAU * x / 2.0).sin() / (TAU * x / 2.0)).powi(2)
            }
        };
        let between_delays = (1.0 - 0.5 * CHIPS as f64 / geometry.block() as f64).powi(2);
        let between_rows = sinc_squared(0.5 * geometry.row_step_hz() * seconds);
        let off_the_wipe_off =
            sinc_squared((geometry.fine_hz().last().unwrap_or(&0.0) + 0.5 * geometry.row_step_hz()) * 1e-3);
        let received = signal / (between_delays * between_rows * off_the_wipe_off);
        10.0 * (received / ((sub_intervals - 1.0) * seconds)).log10()
    }
}

#[cfg(test)]
mod tests {
    use rustfft::FftPlanner;

    use super::super::geometry::Parameters;
    use super::*;
    use crate::C64;

    fn geometry() -> Geometry {
        Geometry::new(&Parameters {
            rate_hz: 2e6,
            doppler_max_hz: 5000.0,
            doppler_step_hz: 500.0,
            blocks: 10,
            sub: 5,
        })
        .unwrap()
    }

    /// Noise everywhere: a peak that noise alone explains.
    fn noise() -> Peak {
        Peak {
            row: 52,
            delay: 7,
            power: 18.0,
            beside: [1.0, 1.0],
            around: [Some(1.0), Some(1.0)],
            median: 1.678_347,
        }
    }

    #[test]
    fn no_pair_of_codes_correlates_more_than_the_stated_bound() {
        const LENGTH: usize = 2 * CHIPS;
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(LENGTH), planner.plan_fft_inverse(LENGTH));
        let spectra: Vec<Vec<C64>> = (1..=PRNS as u8)
            .map(|prn| {
                let mut values: Vec<C64> = ca_code::sampled(prn, LENGTH)
                    .unwrap()
                    .into_iter()
                    .map(|chip| C64::from(f64::from(chip)))
                    .collect();
                forward.process(&mut values);
                values
            })
            .collect();
        let mut largest = 0.0f64;
        for (first, moving) in spectra.iter().enumerate() {
            // a shift moves the spectrum; negative shifts swap the roles of the two codes
            for kilohertz in 0..=10 {
                for second in (0..PRNS).filter(|&second| second != first) {
                    let mut values: Vec<C64> = (0..LENGTH)
                        .map(|k| moving[(k + LENGTH - kilohertz) % LENGTH] * spectra[second][k].conj())
                        .collect();
                    inverse.process(&mut values);
                    let peak = values.iter().map(C64::norm_sqr).fold(0.0, f64::max);
                    largest = largest.max(peak / (LENGTH as f64 * LENGTH as f64).powi(2));
                }
            }
        }
        assert!(largest <= CROSS_CORRELATION, "{largest}");
        assert!(
            largest > 0.99 * CROSS_CORRELATION,
            "the bound is far from tight: {largest}"
        );
    }

    #[test]
    fn noise_alone_is_no_satellite() {
        let geometry = geometry();
        assert!(Detector::new(&geometry, 1e-3).satellites(&[noise(); PRNS]).is_empty());
    }

    #[test]
    fn a_lone_peak_is_reported_from_the_threshold_on() {
        let geometry = geometry();
        let detector = Detector::new(&geometry, 1e-3);
        let median = noise().median;
        for (factor, found) in [(0.999, 0), (1.001, 1)] {
            let mut peaks = [noise(); PRNS];
            peaks[4].power = (detector.threshold() * factor) as f32 * median;
            let satellites = detector.satellites(&peaks);
            assert_eq!(satellites.len(), found);
            assert!(satellites.iter().all(|satellite| satellite.prn == 5));
        }
    }

    #[test]
    fn a_cross_correlation_of_a_strong_satellite_is_not_reported_and_a_weak_satellite_elsewhere_is() {
        let geometry = geometry();
        let detector = Detector::new(&geometry, 1e-3);
        let strong = Peak {
            power: 4000.0,
            ..noise()
        };
        // where the strong satellite leaks most into the map of PRN 2, and where it leaks least
        let row = strong.row + 20;
        let leak = |delay| detector.amplitude_in_cell(1, 7.0, geometry.row_hz(strong.row), 2, row, delay);
        let delays = 0..geometry.block();
        let most = delays.clone().max_by(|&a, &b| leak(a).total_cmp(&leak(b))).unwrap();
        let around = |delay: usize| {
            [1999, 0, 1]
                .map(|offset| leak((delay + offset) % 2000))
                .into_iter()
                .fold(0.0, f64::max)
        };
        let least = delays.min_by(|&a, &b| around(a).total_cmp(&around(b))).unwrap();

        let mut peaks = [noise(); PRNS];
        peaks[0] = strong;
        let power = (6.0 + 4000.0f64.sqrt() * leak(most)).powi(2) as f32;
        assert!(f64::from(power) > 1.3 * detector.noise_threshold);
        peaks[1] = Peak {
            row,
            delay: most,
            power,
            ..noise()
        };
        assert_eq!(detector.satellites(&peaks).len(), 1);
        peaks[1].delay = least;
        assert_eq!(
            detector
                .satellites(&peaks)
                .iter()
                .map(|found| found.prn)
                .collect::<Vec<_>>(),
            [1, 2]
        );
    }

    #[test]
    fn tips_between_cells_are_found() {
        let geometry = geometry();
        let detector = Detector::new(&geometry, 1e-3);
        for offset in [-0.4, 0.0, 0.3] {
            let triangle = |at: f64| (100.0 * (1.0 - (at - offset).abs() * 0.5115).powi(2)) as f32;
            let peak = Peak {
                delay: 0,
                power: triangle(0.0),
                beside: [triangle(-1.0), triangle(1.0)],
                ..noise()
            };
            let expected = f64::rem_euclid(offset, 2000.0);
            assert!((detector.code_phase(&peak) - expected).abs() < 1e-5, "{offset}");
            let parabola = |at: f64| (100.0 - 30.0 * (at - offset).powi(2)) as f32;
            let peak = Peak {
                power: parabola(0.0),
                around: [Some(parabola(-1.0)), Some(parabola(1.0))],
                ..noise()
            };
            assert!((detector.doppler_hz(&peak) - 100.0 * offset).abs() < 1e-2, "{offset}");
        }
        let edge = Peak {
            row: 0,
            around: [None, Some(1.0)],
            ..noise()
        };
        assert_eq!(detector.doppler_hz(&edge), -5200.0);
    }

    #[test]
    fn a_flat_or_broken_peak_gives_finite_places() {
        let geometry = geometry();
        let detector = Detector::new(&geometry, 1e-3);
        let flat = Peak {
            power: 18.0,
            beside: [18.0; 2],
            around: [Some(18.0); 2],
            ..noise()
        };
        assert_eq!((detector.code_phase(&flat), detector.doppler_hz(&flat)), (7.0, 0.0));
        let silent = Peak {
            power: 0.0,
            beside: [0.0; 2],
            around: [Some(0.0); 2],
            median: 0.0,
            ..noise()
        };
        assert!(detector.satellites(&[silent; PRNS]).is_empty());
    }

    #[test]
    fn limits_rise_with_the_company() {
        let geometry = geometry();
        let detector = Detector::new(&geometry, 1e-3);
        let limits =
            [&[][..], &[45.0], &[50.0], &[55.0, 50.0], &[65.0]].map(|others| detector.weakest_cn0_db_hz(others));
        assert!(limits.is_sorted(), "{limits:?}");
        assert!((43.0..45.0).contains(&limits[0]), "{limits:?}");
    }
}
