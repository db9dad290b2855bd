//! After how many samples a recording repeats: the one sign of its rate that the samples themselves carry.
//!
//! A C/A code lasts 1 ms, so all satellites together make the recording resemble itself one millisecond later, wherever
//! their code phases lie. With a wrong rate the search looks for codes that are not there, and what the real ones leave
//! in its map is not noise; its threshold does not hold then.
//!
//! The power `x` of the autocorrelation of white noise at a lag, over its mean, has an exponential distribution. A
//! period shows at its multiples too, and at which of them most depends on the Doppler shifts; so a period's score is
//! the sum of `ln(1 + x) - 1.5` over its multiples. A multiple that is noise costs 0.9 on average, one that shows
//! brings more than that: the period itself beats its half, which has more multiples that are noise, and its double,
//! which has fewer that show.

use rustfft::FftPlanner;

use super::ca_code::CHIPS;
use super::geometry::Geometry;
use crate::{C32, C64, Error};

/// From here on a recording repeats. With `E (1 + x)^4 = 65`, the chance that noise brings one period so far is below
/// `exp(-4 * 7) * 65 exp(-6)`, which is 1 in 10^8 for a hundred thousand periods and leaves a margin for a receiver's
/// filter, which makes neighbouring samples alike.
const CERTAIN: f64 = 7.0;

/// What a multiple costs.
const COST: f64 = 1.5;

/// More samples than this add time and no certainty.
pub(super) const MOST_SAMPLES: usize = 1 << 17;

/// A satellite this much above the threshold is not an accident of a wrong rate.
const BEYOND_DOUBT: f64 = 2.0;

/// A line in the spectrum: this many times the median amplitude. Noise reaches 4.4 times in a hundred thousand bins.
const LINE: f64 = 5.0;

/// The period at which a recording resembles itself most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Its length.
    pub samples: usize,
    /// How certain it is, as above.
    pub strength: f64,
}

impl Period {
    /// The strongest repetition of `samples` that could be a millisecond: after 1023 samples, one a chip, or more.
    ///
    /// `None` if there are too few samples to tell.
    #[must_use]
    pub fn of(samples: &[C32]) -> Option<Self> {
        let samples = &samples[..samples.len().min(MOST_SAMPLES)];
        if samples.len() / 2 <= CHIPS {
            return None;
        }
        let power = autocorrelation_power(samples);
        // at longer lags too few samples have a partner
        let lags = samples.len() * 7 / 8;
        (CHIPS..samples.len() / 2)
            .map(|period| Self {
                samples: period,
                strength: power[period..lags]
                    .iter()
                    .step_by(period)
                    .map(|x| x.ln_1p() - COST)
                    .sum(),
            })
            .max_by(|a, b| a.strength.total_cmp(&b.strength))
    }

    /// Fails if the samples show that the rate is wrong, and no satellite of `peak_over_threshold` contradicts them.
    ///
    /// # Errors
    /// [`Error::Input`] that names the rate at which the samples would repeat every millisecond.
    pub fn check(&self, geometry: &Geometry, peak_over_threshold: f64) -> Result<(), Error> {
        let as_given = self.samples.abs_diff(geometry.block()) <= 1;
        if as_given || self.strength < CERTAIN || peak_over_threshold > BEYOND_DOUBT {
            return Ok(());
        }
        Err(Error::input(format!(
            "the samples repeat every {}, but C/A codes repeat every 1 ms, which is {} samples at the given rate; if this is GPS L1, use --rate {}",
            self.samples,
            geometry.block(),
            self.samples * 1000
        )))
    }
}

/// Squared magnitude of the autocorrelation at every lag below the number of samples, over its mean for white noise of
/// the same power.
fn autocorrelation_power(samples: &[C32]) -> Vec<f64> {
    let len = samples.len();
    let mut planner = FftPlanner::new();
    let mut spectrum: Vec<C64> = samples.iter().map(|x| C64::new(x.re.into(), x.im.into())).collect();
    planner.plan_fft_forward(len).process(&mut spectrum);
    without_lines(&mut spectrum);
    planner.plan_fft_inverse(len).process(&mut spectrum);

    // with as many zeros behind it the cyclic correlation is the plain one
    let mut padded = spectrum;
    padded.resize(2 * len, C64::default());
    planner.plan_fft_forward(2 * len).process(&mut padded);
    for value in &mut padded {
        *value = C64::from(value.norm_sqr());
    }
    planner.plan_fft_inverse(2 * len).process(&mut padded);
    let power = padded[0].re / len as f64;
    padded[..len]
        .iter()
        .enumerate()
        .map(|(lag, value)| {
            let variance = power * power * (len - lag) as f64;
            // silence, or a sample that is not a number, resembles nothing
            if variance.is_normal() {
                value.norm_sqr() / variance
            } else {
                0.0
            }
        })
        .collect()
}

/// A receiver's offset and its whistles repeat at every lag; they are taken out.
fn without_lines(spectrum: &mut [C64]) {
    let mut amplitudes: Vec<f64> = spectrum.iter().map(|value| value.norm()).collect();
    let middle = amplitudes.len() / 2;
    let (_, &mut median, _) = amplitudes.select_nth_unstable_by(middle, f64::total_cmp);
    for value in spectrum {
        if value.norm() > LINE * median {
            *value = C64::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Parameters;
    use super::super::scene::Scene;
    use super::*;

    fn geometry(rate_hz: f64) -> Geometry {
        Geometry::new(&Parameters {
            rate_hz,
            doppler_max_hz: 5000.0,
            doppler_step_hz: 500.0,
            blocks: 10,
            sub: 5,
        })
        .unwrap()
    }

    /// Twenty milliseconds at four million samples per second.
    fn sky(seed: u64, cn0_db_hz: &[f64]) -> Vec<C32> {
        Scene::random(seed, 4e6, 5000.0, 20, cn0_db_hz).samples(80_000).unwrap()
    }

    const STRONG: [f64; 6] = [50.0; 6];

    #[test]
    fn the_samples_tell_the_right_rate_where_a_wrong_one_was_given() {
        for seed in 0..40 {
            let period = Period::of(&sky(seed, &STRONG)).unwrap();
            for wrong in [2e6, 2.5e6, 3.2e6, 5e6, 8e6] {
                let error = period.check(&geometry(wrong), 1.2).unwrap_err().to_string();
                assert!(error.contains("--rate 4000000"), "seed {seed}: {error}");
                assert_eq!(error.lines().count(), 1);
            }
            assert!(period.check(&geometry(4e6), 0.0).is_ok());
        }
    }

    #[test]
    fn noise_and_whistles_do_not_repeat() {
        for seed in 0..50 {
            let mut samples = sky(seed, &[]);
            for (n, sample) in samples.iter_mut().enumerate() {
                let (sin, cos) = (0.3 * n as f32).sin_cos();
                *sample += C32::new(3.0 + cos, 2.0 + sin);
            }
            let period = Period::of(&samples).unwrap();
            assert!(period.strength < CERTAIN, "seed {seed}: {period:?}");
            assert!(period.check(&geometry(2e6), 0.0).is_ok());
        }
    }

    #[test]
    fn a_satellite_beyond_doubt_outweighs_the_samples() {
        let period = Period {
            samples: 4000,
            strength: 200.0,
        };
        assert!(period.check(&geometry(2e6), 1.9).is_err());
        assert!(period.check(&geometry(2e6), 2.1).is_ok());
    }

    #[test]
    fn too_few_samples_and_silence_tell_nothing() {
        assert_eq!(Period::of(&[]), None);
        assert_eq!(Period::of(&[C32::new(1.0, 0.0); 2 * CHIPS]), None);
        for sample in [C32::default(), C32::new(f32::NAN, 0.0)] {
            let silent = Period::of(&[sample; 20_000]).unwrap();
            assert!(silent.check(&geometry(2e6), 0.0).is_ok());
        }
    }
}
