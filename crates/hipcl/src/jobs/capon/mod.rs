//! Array direction finding by Capon's method: a uniform line of elements half a wavelength apart.
//!
//! | stage | API | what it does |
//! |---|---|---|
//! | channelize | OpenCL | FFT of every segment of every element |
//! | select channel | OpenCL | one channel's bins become the snapshot matrix (elements x segments), **the shared data set** |
//! | covariance | HIP | `R = Z Z^H / K` by `rocblas_cherk`, or on a card by `rocblas_cgemm_strided_batched` and a sum; loading of the diagonal |
//! | sum over ranks | RCCL | with `--ranks`: each process has a share of the segments, and all get the sum of their covariances |
//! | invert | HIP | `rocsolver_cpotrf`, `rocsolver_cpotri`, both with `info` checked; the other triangle is filled in |
//! | steer | HIP | `R^-1 a` for every direction by `rocblas_cgemm` |
//! | power | HIP | `1 / (a^H R^-1 a)` |
//! | refine | HIP | the last two again around every peak, on a grid twenty times finer |
//!
//! # What is found
//! A direction counts when its power is a local maximum above [`detect::threshold`] times the median of the spectrum.
//! The threshold follows from a false-alarm probability of [`detect::FALSE_ALARM`] for a whole scene. An emitter that
//! the array's gain lifts 12 dB or more above the noise, and that is a beamwidth or more from any other of at most 3 dB
//! more power, is missed with a probability below 1 %. A generated scene ([`scene::generate`]) counts as found when
//! every emitter is there, within a tenth of a beamwidth and 1.5 dB (with `--loading`, which biases powers, the
//! direction alone), and nothing else is.
//!
//! # Accuracy
//! The largest error is pointwise relative over the whole spectrum and all peaks, against a reference in double
//! precision from the raw samples. A peak is the small difference of large terms, so rounding shows in it in proportion
//! to the spectrum's dynamic range (highest over lowest power). What is tolerated follows that range: 1e-4 plus 6e-8
//! times the range, at most 1e-2 (0.04 dB). Single precision is good for some 50 dB; `--loading` limits the range.

use std::borrow::Cow;
use std::path::PathBuf;

use interop::Bridge;
use platform::Platform;

use self::reference::Reference;
use self::scene::{Shape, Truth};
use super::{Common, Launch, Ranks};
use crate::outcome::{Emitter, Outcome, Picture};
use crate::{C32, Error, Result};

pub mod array;
pub mod detect;
mod file;
mod job;
pub mod reference;
pub mod scene;

/// What rounding may amount to in a spectrum of any range…
const ERROR_FLOOR: f64 = 1e-4;
/// …what it may add for every unit of the dynamic range: half a unit in the last place…
const ERROR_PER_RANGE: f64 = 6e-8;
/// …and where a spectrum is not worth having any more.
const ERROR_LIMIT: f64 = 1e-2;

/// Timed iterations unless told otherwise.
const ITERATIONS: usize = 5;
/// A generated emitter must be found within this part of a beamwidth…
const ANGLE_TOLERANCE: f64 = 0.1;
/// …and this many dB.
const POWER_TOLERANCE_DB: f64 = 1.5;
/// The coarse grid has this many steps to the half-power beamwidth at least.
const STEPS_PER_BEAM: f64 = 6.0;
/// Fewer elements cannot tell a generated scene's emitters apart.
const FEWEST_GENERATED: usize = 16;

/// Options of `hipcl pipeline capon`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Recording to work on: an .npy file of complex64, elements x samples. A scene is generated if not given.
    #[arg(long, value_name = "F.npy")]
    pub input: Option<PathBuf>,
    /// Elements of the generated scene's array.
    #[arg(long, value_name = "N", default_value_t = 341, conflicts_with = "input")]
    pub elements: usize,
    /// Segments of the generated scene; each gives one snapshot.
    #[arg(long, value_name = "K", default_value_t = 1024, conflicts_with = "input")]
    pub segments: usize,
    /// Channels of the channelizer: the length of its FFT, fastest with the factors 2, 3, 5 and 7.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub channels: usize,
    /// Channel to look at, from 0.
    #[arg(long, value_name = "C", default_value_t = 5)]
    pub channel: usize,
    /// Diagonal loading, as a part of the mean diagonal entry of the covariance matrix.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub loading: f32,
    /// Step of the search in degrees; a sixth of a beamwidth, at most 0.1, if not given.
    #[arg(long, value_name = "DEG")]
    pub step: Option<f64>,
    /// Where OpenCL's kernels are launched.
    #[command(flatten)]
    pub launch: Launch,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            input: None,
            elements: 341,
            segments: 1024,
            channels: 32,
            channel: 5,
            loading: 0.0,
            step: None,
            launch: Launch::default(),
        }
    }
}

/// Finds the emitters and verifies the spectrum.
///
/// # Errors
/// Unusable input or options, a singular covariance matrix, or a failed call.
pub fn run(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    run_as_for(bridge.report().platform, bridge, common, options)
}

/// As [`run`], with the shapes of products that suit `platform`, whichever the bridge's is: the same results.
///
/// # Errors
/// As [`run`].
pub fn run_as_for(platform: Platform, bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    options.check()?;
    let recording = Recording::obtain(bridge, common, options)?;
    let shape = recording.shape;
    let step = options
        .step
        .unwrap_or((array::beamwidth(shape.elements).to_degrees() / STEPS_PER_BEAM).min(0.1));
    let grid = detect::coarse_grid(step);

    let launch = &options.launch;
    let part = Part::of(&recording, common)?;
    let make = |kernels| job::Job::new(platform, bridge, kernels, &part, options, &grid);
    let (mut job, kernels) = launch.choose(common.route.is_some(), make)?;
    let mut timer = common.timer(ITERATIONS);
    let mut found = job::Estimate::default();
    let copies = timer.run(bridge, |timer| {
        found = job.iteration(timer, launch.waits)?;
        Ok(())
    })?;
    let snapshots = job.snapshots();

    let reference = Reference::new(&recording.samples, shape, options.channel, options.loading.into())?;
    let all = grid
        .iter()
        .chain(&found.fine_grid)
        .zip(found.power.iter().chain(&found.fine_power));
    let pairs: Vec<(f64, f64)> = all
        .map(|(&sine, &power)| (f64::from(power), reference.power(sine)))
        .collect();
    let max_rel_error = largest_error(&pairs);
    let tolerance = tolerance(&pairs);

    let unbias = detect::unbias(shape.elements, shape.segments, options.loading.into());
    let tops: Vec<(f64, f64)> = found.tops.iter().map(|(sine, power)| (*sine, power * unbias)).collect();
    let emitters: Vec<Emitter> = tops.iter().map(|&(sine, power)| emitter(sine, power)).collect();
    let mut notes = recording.notes.clone();
    let truth_ok = recording.truth.as_ref().map(|truth| {
        let complaints = compare(truth, &tops, shape, options.loading.into());
        let ok = complaints.is_empty();
        notes.extend(complaints);
        ok
    });
    if max_rel_error.is_nan() || max_rel_error > tolerance {
        notes.push("the covariance matrix needs more than single precision; use --loading 1e-4 or more".into());
    }

    Ok(Outcome {
        route: snapshots.route(),
        residency: snapshots.residency(),
        kernels,
        // OpenCL writes the snapshots, HIP reads them, once an iteration
        expected_copies_bytes: job.expected_copies_bytes() * timer.iterations() as u64,
        timer,
        copies,
        max_rel_error,
        tolerance,
        satellites: None,
        picture: picture(shape, options, &grid, &found, &emitters, unbias),
        emitters: Some(emitters),
        targets: None,
        network: None,
        truth_ok,
        notes,
    })
}

/// Largest relative deviation of the first numbers from the second; NaN if there is one.
fn largest_error(pairs: &[(f64, f64)]) -> f64 {
    let errors = pairs
        .iter()
        .map(|(power, expected)| ((power - expected) / expected).abs());
    // `f64::max` alone would forget a NaN
    errors.fold(0.0, |worst, error| {
        if worst.is_nan() || error.is_nan() {
            f64::NAN
        } else {
            worst.max(error)
        }
    })
}

/// What single precision must reach on a spectrum with this range; the second numbers are the reference's powers.
fn tolerance(pairs: &[(f64, f64)]) -> f64 {
    let highest = pairs.iter().map(|(_, power)| *power).fold(0.0, f64::max);
    let lowest = pairs.iter().map(|(_, power)| *power).fold(f64::INFINITY, f64::min);
    (ERROR_FLOOR + ERROR_PER_RANGE * highest / lowest).min(ERROR_LIMIT)
}

/// What one process works on: all segments, or its share of them.
struct Part<'a> {
    /// Of this process.
    shape: Shape,
    /// Of all.
    segments: usize,
    samples: Cow<'a, [C32]>,
    /// Among which the segments are divided.
    ranks: Option<&'a Ranks>,
}

impl<'a> Part<'a> {
    fn of(recording: &'a Recording, common: &Common<'a>) -> Result<Self> {
        let (whole, ranks) = (recording.shape, common.ranks);
        let (shape, samples) = match ranks {
            None => (whole, Cow::Borrowed(&*recording.samples)),
            Some(ranks) => {
                let remedy = "raise --segments, or lower --channels for a recording";
                let share = ranks.share(whole.segments, "segments", remedy)?;
                let shape = Shape {
                    segments: share.len(),
                    ..whole
                };
                let rows = recording.samples.chunks_exact(whole.samples());
                let columns = share.start * whole.channels..share.end * whole.channels;
                (shape, rows.flat_map(|row| &row[columns.clone()]).copied().collect())
            }
        };
        Ok(Self {
            shape,
            segments: whole.segments,
            samples,
            ranks,
        })
    }
}

/// The samples to work on, and what is known about them.
struct Recording {
    shape: Shape,
    samples: Vec<C32>,
    truth: Option<Vec<Truth>>,
    notes: Vec<String>,
}

impl Recording {
    fn obtain(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Self> {
        let most = bridge.cl_device().max_alloc_bytes() / size_of::<C32>() as u64;
        let Some(path) = &options.input else {
            let shape = options.generated();
            check_size(shape, most)?;
            let scene = scene::generate(shape, options.channel, common.seed);
            return Ok(Self {
                shape,
                samples: scene.samples,
                truth: Some(scene.emitters),
                notes: Vec::new(),
            });
        };

        let file::Samples {
            elements,
            per_element,
            mut samples,
        } = file::read(path, most)?;
        let segments = per_element / options.channels;
        if segments == 0 {
            return Err(Error::input(format!(
                "`{}` has {per_element} samples for each of its {elements} elements, fewer than the {} of one segment; make a longer recording, or lower --channels",
                path.display(),
                options.channels
            )));
        }
        let shape = Shape {
            elements,
            segments,
            channels: options.channels,
        };
        check_rank(shape, options.loading)?;
        let mut notes = Vec::new();
        let unused = per_element - shape.samples();
        if unused > 0 {
            samples = samples
                .chunks_exact(per_element)
                .flat_map(|row| &row[..shape.samples()])
                .copied()
                .collect();
            notes.push(format!(
                "the last {unused} samples of each element do not fill a segment of {} and are not used",
                shape.channels
            ));
        }
        Ok(Self {
            shape,
            samples,
            truth: None,
            notes,
        })
    }
}

impl Options {
    /// The shape of a generated recording.
    fn generated(&self) -> Shape {
        Shape {
            elements: self.elements,
            segments: self.segments,
            channels: self.channels,
        }
    }

    /// What can be told before a device is looked for.
    ///
    /// # Errors
    /// Options that no run could meet.
    pub fn check(&self) -> Result<()> {
        check(self)?;
        if self.input.is_some() {
            return Ok(());
        }
        if self.elements < FEWEST_GENERATED {
            return Err(Error::input(format!(
                "--elements {} is too few for a generated scene; use {FEWEST_GENERATED} or more",
                self.elements
            )));
        }
        check_rank(self.generated(), self.loading)
    }
}

fn check(options: &Options) -> Result<()> {
    let Options {
        channels,
        channel,
        loading,
        step,
        elements,
        segments,
        ..
    } = options;
    let refuse = |message: String| Err(Error::Input(message));
    if *channels < 2 {
        return refuse(format!("--channels {channels} is too few; use 2 or more"));
    }
    if channel >= channels {
        return refuse(format!(
            "--channel {channel} is not below the {channels} channels; use 0 to {}",
            channels - 1
        ));
    }
    if !(loading.is_finite() && *loading >= 0.0) {
        return refuse(format!(
            "--loading {loading} is not a number from 0 up; typical values are 1e-4 to 1e-1"
        ));
    }
    if let Some(step) = step
        && !(0.001..=5.0).contains(step)
    {
        return refuse(format!("--step {step} is not between 0.001 and 5 degrees"));
    }
    if *elements == 0 || *segments == 0 {
        return refuse("--elements and --segments must be 1 or more".into());
    }
    Ok(())
}

fn check_size(shape: Shape, most: u64) -> Result<()> {
    let samples = shape
        .elements
        .checked_mul(shape.segments)
        .and_then(|n| n.checked_mul(shape.channels));
    match samples {
        Some(samples) if samples as u64 <= most => Ok(()),
        _ => Err(Error::input(format!(
            "{} elements x {} segments x {} channels exceed the {most} samples that fit in one buffer of the device; lower one of them",
            shape.elements, shape.segments, shape.channels
        ))),
    }
}

/// With fewer snapshots than elements the covariance matrix has no inverse, whatever the samples are.
fn check_rank(shape: Shape, loading: f32) -> Result<()> {
    if shape.segments < shape.elements && loading == 0.0 {
        return Err(Error::input(singular(
            shape.segments + 1,
            &format!("{} snapshots of {} elements", shape.segments, shape.elements),
        )));
    }
    Ok(())
}

/// The message for a covariance matrix without an inverse.
fn singular(minor: usize, why: &str) -> String {
    format!(
        "the covariance matrix is singular at its leading minor of order {minor} ({why}); use more samples than elements x channels, or --loading 1e-3"
    )
}

fn emitter(sine: f64, power: f64) -> Emitter {
    Emitter {
        angle_deg: sine.asin().to_degrees(),
        power_db: 10.0 * power.log10(),
    }
}

/// What is wrong with the tops found (sine and power), given what was generated; empty if nothing is. Loading makes
/// powers come out low by an amount that depends on everything else, so they are judged only without it.
pub fn compare(truth: &[Truth], tops: &[(f64, f64)], shape: Shape, loading: f64) -> Vec<String> {
    let beam = array::beamwidth(shape.elements);
    let mut complaints = Vec::new();
    let mut taken = vec![false; tops.len()];
    for emitter in truth {
        let nearest = (0..tops.len())
            .filter(|&i| !taken[i])
            .min_by(|&i, &j| {
                (tops[i].0 - emitter.sine)
                    .abs()
                    .total_cmp(&(tops[j].0 - emitter.sine).abs())
            })
            .filter(|&i| (tops[i].0 - emitter.sine).abs() < 0.5 * beam);
        let place = format!(
            "the emitter at {:.3} deg with {:.2} dB",
            emitter.angle_deg(),
            emitter.power_db()
        );
        let Some(i) = nearest else {
            complaints.push(format!("{place} was missed"));
            continue;
        };
        taken[i] = true;
        let off = (tops[i].0 - emitter.sine).abs() / beam;
        let db = 10.0 * (tops[i].1 / emitter.power).log10();
        if off.is_nan() || off > ANGLE_TOLERANCE {
            complaints.push(format!("{place} was found {off:.3} beamwidths off"));
        }
        if db.is_nan() || (loading == 0.0 && db.abs() > POWER_TOLERANCE_DB) {
            complaints.push(format!("{place} was found {db:.2} dB off"));
        }
    }
    for (top, _) in tops.iter().zip(&taken).filter(|(_, taken)| !**taken) {
        let Emitter { angle_deg, power_db } = emitter(top.0, top.1);
        complaints.push(format!(
            "{power_db:.2} dB were found at {angle_deg:.3} deg, where there is no emitter"
        ));
    }
    complaints
}

fn picture(
    shape: Shape,
    options: &Options,
    grid: &[f64],
    found: &job::Estimate,
    emitters: &[Emitter],
    unbias: f64,
) -> Picture {
    let db = |power: f32| 10.0 * (f64::from(power) * unbias).log10();
    let all = grid
        .iter()
        .chain(&found.fine_grid)
        .zip(found.power.iter().chain(&found.fine_power));
    // the fine searches show how high the peaks really are
    let mut spectrum: Vec<(f64, f64)> = all
        .map(|(sine, &power)| (sine.asin().to_degrees(), db(power)))
        .collect();
    spectrum.sort_by(|a, b| a.0.total_cmp(&b.0));
    let limit = db(found.limit as f32);
    Picture::Lines {
        title: format!(
            "Capon spectrum: {} elements, {} snapshots, channel {} of {}",
            shape.elements, shape.segments, options.channel, shape.channels
        ),
        x_label: "angle from broadside in degrees".into(),
        y_label: "power at one element in dB".into(),
        series: vec![
            ("Capon".into(), spectrum),
            ("detection threshold".into(), vec![(-90.0, limit), (90.0, limit)]),
        ],
        marks: emitters
            .iter()
            .map(|Emitter { angle_deg, power_db }| {
                (*angle_deg, *power_db, format!("{angle_deg:.2}°, {power_db:.1} dB"))
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        elements: 32,
        segments: 64,
        channels: 8,
    };

    #[test]
    fn a_missed_a_displaced_and_an_invented_emitter_are_complained_about() {
        let truth = [Truth { sine: 0.0, power: 1.0 }, Truth { sine: 0.5, power: 1.0 }];
        assert!(compare(&truth, &[(0.001, 1.1), (0.5, 0.9)], SHAPE, 0.0).is_empty());
        for (tops, complaint) in [
            (vec![(0.0, 1.0)], "missed"),
            (vec![(0.0, 1.0), (0.51, 1.0)], "beamwidths off"),
            (vec![(0.0, 2.0), (0.5, 1.0)], "dB off"),
            (vec![(0.0, 1.0), (0.2, 1.0), (0.5, 1.0)], "no emitter"),
            (vec![(0.0, 1.0), (0.5, f64::NAN)], "dB off"),
        ] {
            let complaints = compare(&truth, &tops, SHAPE, 0.0);
            assert_eq!(complaints.len(), 1, "{tops:?}: {complaints:?}");
            assert!(complaints[0].contains(complaint), "{complaints:?}");
        }
    }

    #[test]
    fn one_nan_is_the_largest_error_wherever_it_stands() {
        for at in 0..3 {
            let mut pairs = [(1.0, 1.0), (1.1, 1.0), (2.0, 2.0)];
            pairs[at].0 = f64::NAN;
            assert!(largest_error(&pairs).is_nan());
        }
        assert!((largest_error(&[(1.0, 1.0), (1.1, 1.0)]) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn too_few_snapshots_name_the_minor_and_the_remedy() {
        let message = check_rank(Shape { segments: 20, ..SHAPE }, 0.0)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("order 21") && message.contains("--loading"),
            "{message}"
        );
        assert!(check_rank(Shape { segments: 20, ..SHAPE }, 0.1).is_ok());
    }
}
