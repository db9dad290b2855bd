//! A pulse radar with an array of receivers: range, direction and amplitude of the strongest echoes of a chirp.
//!
//! | stage | API | from | to |
//! |---|---|---|---|
//! | align | OpenCL | samples | each channel's delay out (Farrow filter), block tapered, zeros appended: `[block][channel][padded]` |
//! | fft | OpenCL | in place | |
//! | matched filter | OpenCL | times the conjugate spectrum of the weighted replica, in place | |
//! | inverse fft | OpenCL | in place | compressed pulses `[block][channel][delay]`, **the shared data set** |
//! | beams | HIP, `rocblas_cgemm_strided_batched` | the same bytes as delay x channel matrices, times weights | `[block][beam][delay]` |
//! | power | HIP | squares, averaged over the blocks | `[beam][delay]` |
//! | peaks | HIP | | the largest local maxima with their neighbours, and the noise |
//!
//! A block holds the echoes of one pulse. The host interpolates the peaks by parabolas.
//!
//! # What is reported
//! A peak is a target if its power exceeds what noise alone exceeds with a probability of 0.001 in a whole map, and is at
//! most 20 dB below the strongest. A generated scene ([`scene::Scene::random`]) counts as found if every echo is
//! reported, within a quarter of a sample, a tenth of a beamwidth and 0.5 dB, and nothing else is.
//!
//! # Accuracy
//! The map is compared with a reference in double precision from the raw samples ([`reference`]), and so are the
//! targets: their places to a hundredth of a cell, their amplitudes as the map.

use interop::Bridge;

use self::job::Search;
use self::reference::Reference;
use self::scene::Scene;
pub use self::shape::Shape;
use super::{Common, Launch};
use crate::outcome::{Outcome, Picture, Target};
use crate::{Error, Result};

pub mod job;
pub mod peaks;
pub mod reference;
pub mod scene;
mod shape;

/// Timed iterations unless told otherwise.
const ITERATIONS: usize = 10;

/// Largest difference to the double-precision map, over its largest value, and of the targets' amplitudes to those of
/// the map.
pub const TOLERANCE: f64 = 1e-4;

/// Columns that a picture needs at most; more are merged, each taking its largest value.
const COLUMNS: usize = 1000;

/// Options of `hipcl pipeline radar`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Sizes of a batch and of its search.
    #[command(flatten)]
    pub shape: Shape,
    /// Peaks to look for, 3 to 5.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub peaks: usize,
    /// Delay of each channel in samples, separated by commas (default: those of the generated scene; 0 with --udp).
    #[arg(long, value_name = "D,D,...", value_delimiter = ',', allow_negative_numbers = true)]
    pub delays: Option<Vec<f64>>,
    /// Where OpenCL's kernels are launched.
    #[command(flatten)]
    pub launch: Launch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            peaks: 5,
            delays: None,
            launch: Launch::default(),
        }
    }
}

impl Options {
    /// Checks the options before a device is looked for.
    ///
    /// # Errors
    /// Options that no run could meet.
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        if !(3..=5).contains(&self.peaks) {
            return Err(Error::input(format!("--peaks {} is not between 3 and 5", self.peaks)));
        }
        let Some(delays) = &self.delays else { return Ok(()) };
        if delays.len() != self.shape.channels {
            return Err(Error::input(format!(
                "--delays has {} values for {} channels; give one for each",
                delays.len(),
                self.shape.channels
            )));
        }
        let most = self.shape.samples as f64;
        match delays.iter().find(|delay| !(delay.abs() < most)) {
            Some(delay) => Err(Error::input(format!(
                "--delays has {delay}, which is not less than a block of {most} samples"
            ))),
            None => Ok(()),
        }
    }

    fn scene(&self, seed: u64) -> Scene {
        let mut scene = Scene::random(&self.shape, seed);
        if let Some(delays) = &self.delays {
            scene.skew.clone_from(delays);
        }
        scene
    }
}

/// Searches a generated scene.
///
/// # Errors
/// [`Error::Input`] for invalid options, else the APIs' errors.
pub fn run(bridge: &Bridge, common: &Common, options: &Options) -> Result<Outcome> {
    options.check()?;
    let shape = &options.shape;
    let scene = options.scene(common.seed);
    let launch = &options.launch;
    let make = |kernels| Search::new(bridge, kernels, shape, &scene.skew, options.peaks);
    let (mut search, kernels) = launch.choose(common.route.is_some(), make)?;
    if launch.graph {
        search.record()?;
    }
    search.load(&scene.batch(shape, 0))?;
    let mut timer = common.timer(ITERATIONS);
    let copies = timer.run(bridge, |timer| search.run(timer, launch.waits))?;

    let (found, map, samples) = (search.found()?, search.map()?, search.samples()?);
    let reference = Reference::new(shape, &samples, &scene.skew);
    let max_rel_error = reference.map_error(&map).max(reference.target_error(&found));
    let targets = found.targets(shape);
    let complaints = peaks::compare(shape, &scene.echoes, &targets, options.peaks);
    let mut notes = vec![format!("generated: {} echoes", scene.echoes.len())];
    let truth_ok = complaints.is_empty();
    notes.extend(complaints);
    Ok(Outcome {
        route: search.route(),
        residency: search.residency(),
        kernels,
        expected_copies_bytes: search.expected_copies_bytes() * timer.iterations() as u64,
        timer,
        copies,
        max_rel_error,
        tolerance: TOLERANCE,
        satellites: None,
        emitters: None,
        picture: picture(shape, &map, found.noise, &targets),
        targets: Some(targets),
        truth_ok: Some(truth_ok),
        notes,
    })
}

/// The map in dB above the noise, with the targets in it.
fn picture(shape: &Shape, map: &[f32], noise: f32, targets: &[Target]) -> Picture {
    let merged = shape.samples.div_ceil(COLUMNS);
    let width = shape.samples.div_ceil(merged);
    let values = map
        .chunks_exact(shape.samples)
        .flat_map(|beam| beam.chunks(merged))
        .map(|cells| {
            let largest = cells.iter().copied().fold(0.0, f32::max);
            10.0 * (largest / noise.max(f32::MIN_POSITIVE)).max(1e-3).log10()
        })
        .collect();
    let half_beam = 1.0 / shape.beams as f64;
    let place = |target: &Target| {
        let sine = target.angle_deg.to_radians().sin();
        (target.range_m, sine, format!("{:.1} dB", target.amplitude_db))
    };
    Picture::Map {
        title: format!("Radar, {} targets", targets.len()),
        x_label: "range in m".into(),
        y_label: "sine of the direction".into(),
        x: (shape.range_m(-0.5), shape.range_m((width * merged) as f64 - 0.5)),
        y: (-1.0 - half_beam, 1.0 - half_beam),
        width,
        height: shape.beams,
        values,
        marks: targets.iter().map(place).collect(),
    }
}
