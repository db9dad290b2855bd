//! What the user may choose, and the signal that follows from it.

use std::path::PathBuf;

use super::geometry::{Geometry, Parameters};
use super::period::{self, Period};
use super::scene::{DEFAULT_CN0_DB_HZ, Scene};
use crate::input::{self, Format};
use crate::jobs::Launch;
use crate::{C32, Error, Result};

/// Sample rate of a generated signal if none is given.
const GENERATED_RATE_HZ: f64 = 4e6;

/// Options of GPS L1 C/A acquisition.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// File of complex baseband samples centred on 1575.42 MHz.
    #[arg(long, value_name = "F")]
    pub input: Option<PathBuf>,
    /// Format of the file (default: by the extension of its name).
    #[arg(long, value_enum, requires = "input")]
    pub format: Option<Format>,
    /// Samples per second (default: what a SigMF file states; 4000000 for a generated signal).
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Generate a signal with known satellites, which have to be found (the default without --input).
    #[arg(long, conflicts_with = "input")]
    pub generate: bool,
    /// Largest Doppler shift to search, positive and negative.
    #[arg(long, value_name = "HZ", default_value_t = 5000.0, allow_negative_numbers = true)]
    pub doppler_max: f64,
    /// Spacing of the coarse Doppler bins.
    #[arg(long, value_name = "HZ", default_value_t = 500.0, allow_negative_numbers = true)]
    pub doppler_step: f64,
    /// Blocks of 1 ms to use, a multiple of --sub.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub blocks: usize,
    /// Blocks that are summed coherently.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub sub: usize,
    /// Probability that a search of noise reports any satellite.
    #[arg(long, value_name = "P", default_value_t = 1e-3, allow_negative_numbers = true)]
    pub pfa: f64,
    /// Where OpenCL's kernels are launched.
    #[command(flatten)]
    pub launch: Launch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            input: None,
            format: None,
            rate: None,
            generate: false,
            doppler_max: 5000.0,
            doppler_step: 500.0,
            blocks: 10,
            sub: 5,
            pfa: 1e-3,
            launch: Launch::default(),
        }
    }
}

/// Samples to search, and the truth about them if they were generated.
pub(super) struct Signal {
    pub samples: Vec<C32>,
    pub parameters: Parameters,
    pub geometry: Geometry,
    pub scene: Option<Scene>,
    /// What the samples of a file say of their rate.
    pub period: Option<Period>,
}

impl Options {
    /// Checks the options before a device is looked for.
    ///
    /// # Errors
    /// Options that no run could meet.
    pub fn check(&self) -> Result<()> {
        if !(self.pfa > 0.0 && self.pfa < 1.0) {
            return Err(Error::input(format!(
                "{} is not a false-alarm probability; set --pfa between 0 and 1",
                self.pfa
            )));
        }
        // A recording may name its own rate.
        match (&self.input, self.rate) {
            (Some(_), None) => Ok(()),
            (_, rate) => self.geometry(rate.unwrap_or(GENERATED_RATE_HZ)).map(drop),
        }
    }

    /// The samples of the file, or generated ones, cut to the blocks that are used.
    pub(super) fn signal(&self, seed: u64) -> Result<Signal> {
        self.check()?;
        let Some(path) = &self.input else {
            let (parameters, geometry) = self.geometry(self.rate.unwrap_or(GENERATED_RATE_HZ))?;
            let scene = Scene::random(
                seed,
                geometry.rate_hz(),
                self.doppler_max,
                self.blocks,
                &DEFAULT_CN0_DB_HZ,
            );
            let samples = scene.samples(geometry.samples())?;
            return Ok(Signal {
                samples,
                parameters,
                geometry,
                scene: Some(scene),
                period: None,
            });
        };
        let mut recording = input::read_first(path, self.format, self.rate, |rate| {
            let (_, geometry) = self.geometry(rate)?;
            Ok(geometry.samples().max(period::MOST_SAMPLES))
        })?;
        let (parameters, geometry) = self.geometry(recording.rate_hz)?;
        if recording.samples.len() < geometry.samples() {
            return Err(Error::input(format!(
                "`{}` has {} samples, but {} blocks of {} samples need {}; use fewer --blocks, or a longer recording",
                path.display(),
                recording.samples.len(),
                geometry.blocks(),
                geometry.block(),
                geometry.samples()
            )));
        }
        let period = Period::of(&recording.samples);
        recording.samples.truncate(geometry.samples());
        input::check_signal(path, &recording.samples)?;
        Ok(Signal {
            samples: recording.samples,
            parameters,
            geometry,
            scene: None,
            period,
        })
    }

    fn geometry(&self, rate_hz: f64) -> Result<(Parameters, Geometry)> {
        let parameters = Parameters {
            rate_hz,
            doppler_max_hz: self.doppler_max,
            doppler_step_hz: self.doppler_step,
            blocks: self.blocks,
            sub: self.sub,
        };
        Ok((parameters.clone(), Geometry::new(&parameters)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(options: &Options) -> String {
        let message = options.signal(1).err().unwrap().to_string();
        assert_eq!(message.lines().count(), 1);
        message
    }

    fn recording(folder: &tempfile::TempDir, samples: usize) -> Options {
        let path = folder.path().join("r.ci8");
        let bytes: Vec<u8> = (0..2 * samples).map(|n| (n * n % 251) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        Options {
            input: Some(path),
            rate: Some(2e6),
            ..Options::default()
        }
    }

    #[test]
    fn a_recording_is_cut_to_the_blocks_that_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let signal = recording(&folder, 20_123).signal(1).unwrap();
        assert_eq!(signal.samples.len(), 20_000);
        assert!(signal.scene.is_none());
    }

    #[test]
    fn a_recording_shorter_than_the_blocks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for samples in [10, 1999, 19_999] {
            let message = message(&recording(&folder, samples));
            assert!(
                message.contains(&format!("has {samples} samples")) && message.contains("need 20000"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_rate_that_does_not_fit_is_refused_before_the_file_is_read() {
        let missing = Some(PathBuf::from("does/not/exist.cf32"));
        for (rate, part) in [
            (4.1e6, "prime factor 41"),
            (2_000_001.0, "whole number"),
            (-1.0, "not a sample rate"),
            (f64::NAN, "not a sample rate"),
        ] {
            let message = message(&Options {
                input: missing.clone(),
                rate: Some(rate),
                ..Options::default()
            });
            assert!(message.contains(part), "{message}");
        }
        let message = message(&Options {
            input: missing,
            rate: Some(4e6),
            ..Options::default()
        });
        assert!(message.contains("does/not/exist.cf32"), "{message}");
    }

    #[test]
    fn a_recording_that_falls_silent_in_the_used_blocks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.ci8");
        let mut bytes = vec![0; 2 * 20_000];
        bytes.extend([1, 2, 3, 4]);
        std::fs::write(&path, bytes).unwrap();
        let message = message(&Options {
            input: Some(path),
            rate: Some(2e6),
            ..Options::default()
        });
        assert!(message.contains("no signal"), "{message}");
    }

    #[test]
    fn a_probability_that_is_none_is_refused() {
        for pfa in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(
                message(&Options {
                    pfa,
                    ..Options::default()
                })
                .contains("--pfa")
            );
        }
    }

    #[test]
    fn the_command_line_has_the_documented_defaults() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let parsed = <Line as clap::Parser>::parse_from(["gps"]).options;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", Options::default()));
        let error = |line: &[&str]| <Line as clap::Parser>::try_parse_from(line).err().unwrap();
        assert_eq!(
            error(&["gps", "--generate", "--input", "f"]).kind(),
            clap::error::ErrorKind::ArgumentConflict
        );
        assert_eq!(
            error(&["gps", "--input", "f", "--format", "wav"]).kind(),
            clap::error::ErrorKind::InvalidValue
        );
    }
}
