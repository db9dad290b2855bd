//! Generated signals: what is in the air, and what a receiver makes of it.

use std::f64::consts::TAU;

use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::ca_code::{self, CARRIER_HZ, CHIP_RATE_HZ, CHIPS, PRNS};
use crate::{C32, Error, Result};

/// One satellite as it is received.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmitter {
    /// Code number, 1 to 32.
    pub prn: u8,
    /// Shift of the carrier; the code runs faster by the same ratio.
    pub doppler_hz: f64,
    /// Samples from the first sample to the beginning of the next code period; need not be whole.
    pub code_phase_samples: f64,
    /// Phase of the carrier at the first sample, in cycles.
    pub carrier_phase_cycles: f64,
    /// Carrier power over noise power density, in dB-Hz.
    pub cn0_db_hz: f64,
    /// The code period at whose beginning the navigation bit changes sign, counted from the first one that begins in
    /// the signal.
    pub bit_edge: Option<usize>,
}

/// Satellites in complex Gaussian noise of power 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Samples per second.
    pub rate_hz: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// The satellites.
    pub transmitters: Vec<Transmitter>,
}

/// Strengths of the default scene in dB-Hz. The weakest is what a receiver under open sky still tracks with ease.
pub const DEFAULT_CN0_DB_HZ: [f64; 7] = [49.0, 48.0, 47.0, 46.0, 45.0, 44.0, 43.0];

impl Scene {
    /// A scene with one satellite for each strength in `cn0_db_hz` (at most 32), everything else drawn from `seed`:
    /// which satellites, Doppler within plus or minus `doppler_max_hz`, any code and carrier phase, a bit edge at any
    /// of the `blocks` code periods.
    pub fn random(seed: u64, rate_hz: f64, doppler_max_hz: f64, blocks: usize, cn0_db_hz: &[f64]) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut prns: Vec<u8> = (1..=PRNS as u8).collect();
        prns.shuffle(&mut random);
        let transmitters = prns
            .into_iter()
            .zip(cn0_db_hz)
            .map(|(prn, &cn0_db_hz)| Transmitter {
                prn,
                doppler_hz: random.random_range(-doppler_max_hz..=doppler_max_hz),
                code_phase_samples: random.random_range(0.0..rate_hz / 1000.0),
                carrier_phase_cycles: random.random_range(0.0..1.0),
                cn0_db_hz,
                bit_edge: Some(random.random_range(0..blocks)),
            })
            .collect();
        Self {
            rate_hz,
            seed,
            transmitters,
        }
    }

    /// The first `count` samples.
    ///
    /// # Errors
    /// [`Error::Input`] for a code number outside of 1 to 32.
    pub fn samples(&self, count: usize) -> Result<Vec<C32>> {
        // another stream than the one that draws a random scene of the same seed
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(1);
        let axis = 0.5f64.sqrt();
        let mut samples: Vec<(f64, f64)> = (0..count)
            .map(|_| {
                (
                    axis * random.sample::<f64, _>(StandardNormal),
                    axis * random.sample::<f64, _>(StandardNormal),
                )
            })
            .collect();
        for transmitter in &self.transmitters {
            let signs = ca_code::signs(transmitter.prn).ok_or_else(|| {
                Error::input(format!(
                    "there is no satellite {}; use a PRN number from 1 to {PRNS}",
                    transmitter.prn
                ))
            })?;
            // noise of power 1 in a bandwidth of the sample rate has the density 1 / rate
            let amplitude = (10f64.powf(transmitter.cn0_db_hz / 10.0) / self.rate_hz).sqrt();
            let chips_per_sample = CHIP_RATE_HZ * (1.0 + transmitter.doppler_hz / CARRIER_HZ) / self.rate_hz;
            for (n, sample) in samples.iter_mut().enumerate() {
                let chip = ((n as f64 - transmitter.code_phase_samples) * chips_per_sample).floor() as i64;
                let flipped = transmitter
                    .bit_edge
                    .is_some_and(|edge| chip.div_euclid(CHIPS as i64) >= edge as i64);
                let sign = f64::from(signs[chip.rem_euclid(CHIPS as i64) as usize]) * if flipped { -1.0 } else { 1.0 };
                let cycles =
                    transmitter.carrier_phase_cycles + (transmitter.doppler_hz * n as f64 / self.rate_hz).fract();
                let (sin, cos) = (TAU * cycles).sin_cos();
                sample.0 += amplitude * sign * cos;
                sample.1 += amplitude * sign * sin;
            }
        }
        Ok(samples
            .into_iter()
            .map(|(re, im)| C32::new(re as f32, im as f32))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_power_one_and_no_mean() {
        let scene = Scene {
            rate_hz: 4e6,
            seed: 5,
            transmitters: Vec::new(),
        };
        let samples = scene.samples(100_000).unwrap();
        let power = samples.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / 1e5;
        let mean = samples.iter().sum::<C32>() / 1e5;
        assert!((power - 1.0).abs() < 0.02, "{power}");
        assert!(mean.norm() < 0.02, "{mean}");
    }

    #[test]
    fn a_satellite_has_its_strength_phase_and_bit_edge() {
        let transmitter = Transmitter {
            prn: 9,
            doppler_hz: 0.0,
            code_phase_samples: 100.0,
            carrier_phase_cycles: 0.25,
            cn0_db_hz: 90.0,
            bit_edge: Some(1),
        };
        let scene = Scene {
            rate_hz: 4.092e6,
            seed: 1,
            transmitters: vec![transmitter],
        };
        let samples = scene.samples(3 * 4092).unwrap();
        let code = ca_code::sampled(9, 4092).unwrap();
        let period = |first: usize| -> C32 { (0..4092).map(|n| samples[first + n] * code[n]).sum::<C32>() / 4092.0 };
        // 90 dB-Hz at 4.092 MHz, on the imaginary axis
        let amplitude = (1e9f32 / 4.092e6).sqrt();
        assert!((period(100) / amplitude - C32::i()).norm() < 0.01, "{}", period(100));
        assert!((period(4192) / amplitude + C32::i()).norm() < 0.01, "{}", period(4192));
    }

    #[test]
    fn scenes_repeat_with_their_seed_and_only_then() {
        let scene = |seed| Scene::random(seed, 2e6, 5000.0, 10, &DEFAULT_CN0_DB_HZ);
        assert_eq!(scene(3), scene(3));
        assert_ne!(scene(3), scene(4));
        assert_eq!(scene(3).samples(100).unwrap(), scene(3).samples(100).unwrap());
        let mut impossible = scene(3);
        impossible.transmitters[0].prn = 33;
        assert!(impossible.samples(1).unwrap_err().to_string().contains("satellite 33"));
    }
}
