//! Generated batches: known echoes on all channels, in noise.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::shape::Shape;
use crate::{C32, C64};

/// How far the weakest generated echo lies above the noise of a batch's map, in dB, if all blocks were one.
const WEAKEST_DB: f64 = 38.0;
/// How far the strongest lies above the weakest.
const SPREAD_DB: f64 = 12.0;
/// Largest delay of a channel in samples, to either side.
const MOST_SKEW: f64 = 2.5;
/// Generated echoes lie this many resolution cells apart.
const APART: f64 = 4.0;

/// One echo.
#[derive(Clone, Debug, PartialEq)]
pub struct Echo {
    /// Samples from the start of a block to the first sample of the echo.
    pub delay: f64,
    /// Sine of the direction it comes from.
    pub sine: f64,
    /// Amplitude at one element; noise has power 1.
    pub amplitude: f64,
}

/// Echoes, and the receiver that they reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The echoes, strongest first.
    pub echoes: Vec<Echo>,
    /// Delay of each channel's receiver in samples.
    pub skew: Vec<f64>,
    /// Seed of the phases and the noise.
    pub seed: u64,
}

impl Scene {
    /// Three to five echoes (as many as have room) and the delays of the channels, drawn from `seed`.
    pub fn random(shape: &Shape, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let wanted = random.random_range(3..=5);
        let edge = shape.taper_edge() as f64 + MOST_SKEW + 3.0;
        let places = edge..shape.samples as f64 - shape.pulse as f64 - edge;
        let weakest = (10f64.powf(WEAKEST_DB / 10.0) / shape.blocks as f64 * shape.noise_power()).sqrt();
        let mut echoes: Vec<Echo> = Vec::new();
        // a narrow range of delays has no room for all
        for _ in 0..1000 {
            if echoes.len() == wanted || places.is_empty() {
                break;
            }
            let delay = random.random_range(places.clone());
            let apart = APART * shape.resolution();
            if echoes.iter().any(|other| (other.delay - delay).abs() < apart) {
                continue;
            }
            let above_db = random.random_range(0.0..SPREAD_DB);
            echoes.push(Echo {
                delay,
                sine: random.random_range(-0.8..0.8),
                amplitude: weakest * 10f64.powf(above_db / 20.0),
            });
        }
        echoes.sort_by(|a, b| b.amplitude.total_cmp(&a.amplitude));
        let skew = (0..shape.channels)
            .map(|_| random.random_range(-MOST_SKEW..MOST_SKEW))
            .collect();
        Self { echoes, skew, seed }
    }

    /// One batch, `[block][channel][sample]`. Batches differ in their noise and in the phases of the echoes.
    pub fn batch(&self, shape: &Shape, number: u64) -> Vec<C32> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        // another stream than the one that draws a random scene of the same seed
        random.set_stream(1 + number);
        let axis = 0.5f64.sqrt();
        let mut samples = Vec::with_capacity(shape.batch());
        for _ in 0..shape.blocks {
            let phases: Vec<f64> = self.echoes.iter().map(|_| random.random_range(0.0..1.0)).collect();
            for (channel, skew) in self.skew.iter().enumerate() {
                let mut row: Vec<C64> = (0..shape.samples)
                    .map(|_| axis * C64::new(random.sample(StandardNormal), random.sample(StandardNormal)))
                    .collect();
                for (echo, phase) in self.echoes.iter().zip(&phases) {
                    let cycles = phase + 0.5 * channel as f64 * echo.sine;
                    let factor = C64::from_polar(echo.amplitude, std::f64::consts::TAU * cycles);
                    let start = echo.delay + skew;
                    let first = start.floor().max(0.0) as usize;
                    let reach = row.iter_mut().enumerate().skip(first).take(shape.pulse + 2);
                    for (n, sample) in reach {
                        *sample += factor * shape.chirp(n as f64 - start);
                    }
                }
                samples.extend(row.into_iter().map(|x| C32::new(x.re as f32, x.im as f32)));
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scene_follows_from_its_seed_and_its_echoes_are_apart() {
        let shape = Shape::default();
        for seed in 0..50 {
            let scene = Scene::random(&shape, seed);
            assert_eq!(scene, Scene::random(&shape, seed));
            assert!((3..=5).contains(&scene.echoes.len()));
            for (i, echo) in scene.echoes.iter().enumerate() {
                let last = echo.delay + shape.pulse as f64 + MOST_SKEW;
                assert!(echo.delay > 0.0 && last < shape.samples as f64);
                let others = &scene.echoes[..i];
                assert!(others.iter().all(|other| (other.delay - echo.delay).abs() >= 16.0));
            }
        }
        assert_ne!(Scene::random(&shape, 1), Scene::random(&shape, 2));
    }

    #[test]
    fn batches_of_a_scene_differ_and_come_again() {
        let shape = Shape {
            blocks: 2,
            ..Shape::default()
        };
        let scene = Scene::random(&shape, 3);
        let first = scene.batch(&shape, 0);
        assert_eq!(first.len(), shape.batch());
        assert_eq!(first, scene.batch(&shape, 0));
        assert_ne!(first, scene.batch(&shape, 1));
    }
}
