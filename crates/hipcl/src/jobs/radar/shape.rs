//! What is received and what is searched: sizes, the chirp, the windows and the beams.

use std::f64::consts::TAU;

use super::net::Geometry;
use crate::{C64, Error, Result};

/// Speed of light in metres a second.
const LIGHT_M_S: f64 = 299_792_458.0;
/// The band may take this part of the sample rate: the cubic between samples loses what lies further out.
const WIDEST_BAND: f64 = 0.4;
/// Least product of a pulse's length and band.
const LEAST_COMPRESSION: f64 = 32.0;

/// Sizes of a batch and of its search.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct Shape {
    /// Blocks of a batch, each with the echoes of one pulse; their powers are averaged.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub blocks: usize,
    /// Channels: elements of a line, half a wavelength apart.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub channels: usize,
    /// Samples of a block of a channel.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    pub samples: usize,
    /// Samples of the pulse.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub pulse: usize,
    /// Beams, evenly over the sine of the direction.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub beams: usize,
    /// Samples per second.
    #[arg(long, value_name = "HZ", default_value_t = 20e6, allow_negative_numbers = true)]
    pub rate: f64,
    /// Band of the chirp.
    #[arg(long, value_name = "HZ", default_value_t = 5e6, allow_negative_numbers = true)]
    pub bandwidth: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            blocks: 16,
            channels: 8,
            samples: 1600,
            pulse: 400,
            beams: 32,
            rate: 20e6,
            bandwidth: 5e6,
        }
    }
}

impl Shape {
    /// Refuses what no search could use.
    ///
    /// # Errors
    /// The first size that does not fit the others, with what does.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::Input(message));
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return refuse(format!("--rate {} is not a sample rate above 0", self.rate));
        }
        let widest = WIDEST_BAND * self.rate;
        if !(self.bandwidth > 0.0 && self.bandwidth <= widest) {
            return refuse(format!(
                "--bandwidth {} is not above 0 and up to {widest}, {WIDEST_BAND} of the sample rate",
                self.bandwidth
            ));
        }
        if self.channels < 2 || self.channels > usize::from(u16::MAX) {
            return refuse(format!("--channels {} is not between 2 and 65535", self.channels));
        }
        if self.blocks == 0 {
            return refuse("--blocks 0 is too few; use 1 or more".into());
        }
        let least = LEAST_COMPRESSION / self.cycles();
        if (self.pulse as f64) < least {
            return refuse(format!(
                "--pulse {} compresses too little; use {:.0} or more with this --bandwidth",
                self.pulse,
                least.ceil()
            ));
        }
        if self.samples < 2 * self.pulse {
            return refuse(format!(
                "--samples {} is less than two pulses; use {} or more",
                self.samples,
                2 * self.pulse
            ));
        }
        if self.beams < 4 * self.channels {
            return refuse(format!(
                "--beams {} leaves gaps between the beams; use {} or more, four for each channel",
                self.beams,
                4 * self.channels
            ));
        }
        Ok(())
    }

    /// Refuses a batch that no buffer or no kernel's index holds; `most` is the largest number of samples in a buffer.
    pub(super) fn check_size(&self, most: u64) -> Result<()> {
        let rows = self.blocks.checked_mul(self.channels);
        let padded = rows.and_then(|rows| rows.checked_mul(self.padded()));
        let cells = self.beams.checked_mul(self.samples);
        let formed = cells.and_then(|cells| cells.checked_mul(self.blocks));
        let fits = |count: Option<usize>, most: u64| count.is_some_and(|count| count as u64 <= most);
        if fits(padded, most) && fits(formed, most) && fits(cells, i32::MAX as u64) {
            return Ok(());
        }
        Err(Error::input(format!(
            "{} blocks of {} channels and {} beams with {} samples exceed the {most} samples that fit in one buffer of the device; lower one of them",
            self.blocks, self.channels, self.beams, self.samples
        )))
    }

    /// Sizes of a batch on the network.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            blocks: self.blocks,
            channels: self.channels,
            samples: self.samples,
        }
    }

    /// Samples of a batch.
    pub fn batch(&self) -> usize {
        self.blocks * self.channels * self.samples
    }

    /// Length of the transforms: room for the whole correlation, so nothing comes round.
    pub fn padded(&self) -> usize {
        (self.samples + self.pulse - 1).next_power_of_two()
    }

    /// Cells of the search: each delay of a block in each beam.
    pub fn cells(&self) -> usize {
        self.beams * self.samples
    }

    /// Band in cycles per sample.
    pub(super) fn cycles(&self) -> f64 {
        self.bandwidth / self.rate
    }

    /// Samples between two echoes that are just told apart.
    pub fn resolution(&self) -> f64 {
        self.rate / self.bandwidth
    }

    /// Beamwidth of the array, as a difference of sines.
    pub fn beamwidth(&self) -> f64 {
        2.0 / self.channels as f64
    }

    /// The chirp at a time in samples, 0 where its first sample is: amplitude 1, and 0 outside of the pulse.
    pub fn chirp(&self, time: f64) -> C64 {
        let length = self.pulse as f64;
        if !(-0.5..length - 0.5).contains(&time) {
            return C64::default();
        }
        let from_middle = time - 0.5 * (length - 1.0);
        let cycles = 0.5 * self.cycles() / length * from_middle * from_middle;
        C64::from_polar(1.0, TAU * cycles)
    }

    /// Weight of the replica's sample, which keeps the range sidelobes low.
    pub(super) fn replica_weight(&self, at: usize) -> f64 {
        hamming(at, self.pulse)
    }

    /// What a block is multiplied by: cosines over a 32nd of it at both ends, so an echo cut off there does not ring.
    pub(super) fn taper(&self) -> Vec<f32> {
        let edge = self.taper_edge();
        (0..self.samples)
            .map(|n| {
                let inside = n.min(self.samples - 1 - n);
                if inside >= edge {
                    return 1.0;
                }
                let part = (inside as f64 + 0.5) / edge as f64;
                (0.5 - 0.5 * (0.5 * TAU * part).cos()) as f32
            })
            .collect()
    }

    /// Samples at each end of a block that are tapered.
    pub(super) fn taper_edge(&self) -> usize {
        self.samples / 32
    }

    /// Sine of a beam's direction; `beam` need not be whole.
    pub fn sine(&self, beam: f64) -> f64 {
        let sine = 2.0 * beam / self.beams as f64 - 1.0;
        // beams go round
        (sine + 1.0).rem_euclid(2.0) - 1.0
    }

    /// Weight of a channel, which keeps the sidelobes of the beams low; together they are 1.
    pub(super) fn channel_weight(&self, channel: usize) -> f64 {
        let all: f64 = (0..self.channels).map(|channel| hamming(channel, self.channels)).sum();
        hamming(channel, self.channels) / all
    }

    /// Sum of the replica's weights: what an echo of amplitude 1 amounts to in the correlation.
    pub(super) fn gain(&self) -> f64 {
        (0..self.pulse).map(|n| self.replica_weight(n)).sum()
    }

    /// Noise power of a cell, where each sample has noise of power 1.
    pub(super) fn noise_power(&self) -> f64 {
        let square = |x: f64| x * x;
        let replica: f64 = (0..self.pulse).map(|n| square(self.replica_weight(n))).sum();
        let channels: f64 = (0..self.channels).map(|c| square(self.channel_weight(c))).sum();
        replica / square(self.gain()) * channels
    }

    /// Distance of an echo in metres, from its delay in samples.
    pub fn range_m(&self, delay: f64) -> f64 {
        0.5 * LIGHT_M_S * delay / self.rate
    }
}

fn hamming(at: usize, count: usize) -> f64 {
    0.54 - 0.46 * (TAU * at as f64 / (count - 1) as f64).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_refused_with_what_does() {
        let refused = |change: fn(&mut Shape), part: &str| {
            let mut shape = Shape::default();
            change(&mut shape);
            let message = shape.check().expect_err("refused").to_string();
            assert!(message.contains(part) && message.lines().count() == 1, "{message}");
        };
        refused(|shape| shape.rate = f64::NAN, "--rate");
        refused(|shape| shape.bandwidth = 9e6, "8000000");
        refused(|shape| shape.bandwidth = 0.0, "--bandwidth 0");
        refused(|shape| shape.channels = 1, "--channels 1");
        refused(|shape| shape.channels = 65536, "65535");
        refused(|shape| shape.blocks = 0, "--blocks 0");
        refused(|shape| shape.pulse = 127, "128 or more");
        refused(|shape| shape.samples = 799, "800 or more");
        refused(|shape| shape.beams = 31, "32 or more");
        assert!(Shape::default().check().is_ok());
        let huge = Shape {
            blocks: usize::MAX / 4,
            ..Shape::default()
        };
        assert!(
            huge.check_size(u64::MAX)
                .is_err_and(|error| error.to_string().contains("lower one"))
        );
        assert!(Shape::default().check_size(32 * 1600 * 16).is_ok());
        assert!(Shape::default().check_size(32 * 1600 * 16 - 1).is_err());
    }

    #[test]
    fn a_correlation_of_any_length_fits_without_coming_round() {
        for (samples, pulse) in [(1600, 400), (1649, 400), (800, 400), (4096, 128), (1000, 500)] {
            let shape = Shape {
                samples,
                pulse,
                ..Shape::default()
            };
            assert!(shape.padded() >= samples + pulse - 1 && shape.padded().is_power_of_two());
        }
    }

    #[test]
    fn beams_go_round_the_circle_of_sines() {
        let shape = Shape::default();
        assert_eq!(shape.sine(0.0), -1.0);
        assert_eq!(shape.sine(16.0), 0.0);
        assert!((shape.sine(-0.5) - (1.0 - 1.0 / 32.0)).abs() < 1e-12);
        assert!((shape.sine(31.75) - (1.0 - 0.5 / 32.0)).abs() < 1e-12);
    }

    #[test]
    fn the_taper_leaves_the_middle_of_a_block_as_it_is() {
        let shape = Shape::default();
        let taper = shape.taper();
        assert_eq!(taper.len(), 1600);
        assert!(taper[50..1550].iter().all(|&weight| weight == 1.0));
        assert!(taper[0] < 0.01 && taper[1599] == taper[0] && taper[49] > 0.99 && taper[49] < 1.0);
        assert!(taper[..50].is_sorted());
    }
}
