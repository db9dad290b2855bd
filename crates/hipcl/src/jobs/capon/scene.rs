//! A generated scene: known emitters, another one that is not in the channel, and noise.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::array;
use crate::{C32, C64};

/// Noise power of one sample; [`Shape::channel_noise`] of it falls into one channel.
const NOISE: f64 = 1.0;

/// Sizes of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements of the array.
    pub elements: usize,
    /// Segments, each of which gives one snapshot.
    pub segments: usize,
    /// Channels of the channelizer: samples of a segment.
    pub channels: usize,
}

impl Shape {
    /// Samples of one element.
    pub fn samples(&self) -> usize {
        self.segments * self.channels
    }

    /// Noise power in one channel: the channelizer divides by the number of channels.
    pub fn channel_noise(&self) -> f64 {
        NOISE / self.channels as f64
    }
}

/// An emitter as it was generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Sine of the direction from broadside.
    pub sine: f64,
    /// Power at one element, relative to 1.
    pub power: f64,
}

impl Truth {
    /// Direction from broadside in degrees.
    pub fn angle_deg(&self) -> f64 {
        self.sine.asin().to_degrees()
    }

    /// Power in dB relative to 1.
    pub fn power_db(&self) -> f64 {
        10.0 * self.power.log10()
    }
}

/// A scene and its samples.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What is to be found, in order of angle.
    pub emitters: Vec<Truth>,
    /// Samples, element after element.
    pub samples: Vec<C32>,
}

/// Generates the scene of `seed`, with its emitters in `channel`.
///
/// There are two emitters 1.0 to 1.5 beamwidths apart (3 to 10 dB above the channel's noise, within 3 dB of each
/// other), two or three (0 to 10 dB) at least 4 beamwidths from any other, and a weak one (12 dB above the noise only
/// after the array's gain), all within 60 degrees from broadside. A strong emitter in another channel must not be
/// found. Signals have constant modulus and a random phase in every segment; noise is white and Gaussian.
pub fn generate(shape: Shape, channel: usize, seed: u64) -> Scene {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let emitters = place(&mut random, shape, array::beamwidth(shape.elements));
    record(&mut random, shape, channel, emitters)
}

/// A scene with nothing in `channel` but noise.
pub fn noise_only(shape: Shape, channel: usize, seed: u64) -> Scene {
    record(&mut ChaCha8Rng::seed_from_u64(seed), shape, channel, Vec::new())
}

/// What the array receives of these emitters.
fn record(random: &mut ChaCha8Rng, shape: Shape, channel: usize, emitters: Vec<Truth>) -> Scene {
    let other = Truth {
        sine: random.random_range(-0.8..0.8),
        power: 10.0 * shape.channel_noise(),
    };
    let other_channel = (channel + 1 + random.random_range(0..shape.channels - 1)) % shape.channels;

    // amplitude of every source in every segment
    let mut amplitudes = |source: &Truth| -> Vec<C64> {
        (0..shape.segments)
            .map(|_| C64::from_polar(source.power.sqrt(), random.random_range(0.0..std::f64::consts::TAU)))
            .collect()
    };
    let inside: Vec<Vec<C64>> = emitters.iter().map(&mut amplitudes).collect();
    let outside = amplitudes(&other);
    let carrier = |channel: usize| -> Vec<C64> {
        let turn = std::f64::consts::TAU / shape.channels as f64;
        (0..shape.channels)
            .map(|t| C64::from_polar(1.0, turn * ((channel * t) % shape.channels) as f64))
            .collect()
    };
    let (inside_carrier, outside_carrier) = (carrier(channel), carrier(other_channel));

    let mut samples = Vec::with_capacity(shape.elements * shape.samples());
    let scale = (0.5 * NOISE).sqrt() as f32;
    for element in 0..shape.elements {
        let steering: Vec<C64> = emitters
            .iter()
            .map(|source| array::response(element, source.sine))
            .collect();
        let outside_steering = array::response(element, other.sine);
        for segment in 0..shape.segments {
            let a: C64 = steering
                .iter()
                .zip(&inside)
                .map(|(steer, signal)| steer * signal[segment])
                .sum();
            let b = outside_steering * outside[segment];
            for (inner, outer) in inside_carrier.iter().zip(&outside_carrier) {
                let signal = a * inner + b * outer;
                let mut noise = || -> f32 { StandardNormal.sample(random) };
                let noise = C32::new(noise(), noise()) * scale;
                samples.push(C32::new(signal.re as f32, signal.im as f32) + noise);
            }
        }
    }
    Scene { emitters, samples }
}

/// Where the emitters are and how strong.
fn place(random: &mut ChaCha8Rng, shape: Shape, beam: f64) -> Vec<Truth> {
    const EDGE: f64 = 0.866;
    let noise = shape.channel_noise();
    let from_db = |db: f64| noise * 10f64.powf(db / 10.0);

    let first = random.random_range(-EDGE..EDGE - 1.5 * beam);
    let second = first + random.random_range(1.0..1.5) * beam;
    let strength: f64 = random.random_range(3.0..10.0);
    let partner = (strength + random.random_range(-3.0..3.0)).clamp(3.0, 10.0);
    let mut emitters = vec![
        Truth {
            sine: first,
            power: from_db(strength),
        },
        Truth {
            sine: second,
            power: from_db(partner),
        },
    ];
    let singles = random.random_range(2..=3);
    for i in 0..=singles {
        let power = if i == singles {
            from_db(12.0) / shape.elements as f64
        } else {
            from_db(random.random_range(0.0..10.0))
        };
        // a small array has little room: after many tries the emitter is left out
        let free = (0..1000)
            .map(|_| random.random_range(-EDGE..EDGE))
            .find(|sine: &f64| emitters.iter().all(|taken| (taken.sine - sine).abs() >= 4.0 * beam));
        if let Some(sine) = free {
            emitters.push(Truth { sine, power });
        }
    }
    emitters.sort_by(|a, b| a.sine.total_cmp(&b.sine));
    emitters
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        elements: 32,
        segments: 16,
        channels: 8,
    };

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        let (a, b) = (generate(SHAPE, 3, 7), generate(SHAPE, 3, 7));
        assert_eq!(a.samples, b.samples);
        assert_ne!(a.samples, generate(SHAPE, 3, 8).samples);
    }

    #[test]
    fn every_scene_has_a_close_pair_and_a_weak_emitter() {
        let beam = array::beamwidth(SHAPE.elements);
        for seed in 0..50 {
            let emitters = generate(SHAPE, 3, seed).emitters;
            assert!(emitters.len() >= 4, "seed {seed}: {emitters:?}");
            let close = emitters
                .windows(2)
                .filter(|pair| pair[1].sine - pair[0].sine <= 1.5 * beam)
                .count();
            assert_eq!(close, 1, "seed {seed}: {emitters:?}");
        }
    }
}
