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
//! | mean over ranks | RCCL | with `--ranks`: each process has a share of the blocks | the mean of their powers |
//! | peaks | HIP | | the largest local maxima with their neighbours, and the noise |
//!
//! A block holds the echoes of one pulse. The host interpolates the peaks by parabolas.
//!
//! # What is reported
//! A peak is a target if its power exceeds what noise alone exceeds with a probability of 0.001 in a whole map, and is at
//! most 20 dB below the strongest. A generated scene ([`scene::Scene::random`]) counts as found if every echo is
//! reported, within a quarter of a sample, a tenth of a beamwidth and 0.5 dB, and nothing else is.
//!
//! With `--udp` the batches come from the network ([`net`]), and nothing is known of them.
//!
//! # Accuracy
//! The map is compared with a reference in double precision from the raw samples ([`mod@reference`]), and so are the
//! targets: their places to a hundredth of a cell, their amplitudes as the map.

use std::net::SocketAddr;
use std::time::Duration;

use interop::{Bridge, Counts};

use self::job::Search;
use self::net::Network;
use self::net::receiver::Receiver;
use self::reference::Reference;
use self::scene::Scene;
pub use self::shape::Shape;
use super::launch::Choice;
use super::{Common, Launch};
use crate::outcome::{Kernels, Outcome, Picture, Target};
use crate::output::print;
use crate::timing::{ApiName, StageTimer};
use crate::{C32, Error, Result};

pub mod job;
pub mod net;
pub mod peaks;
pub mod reference;
pub mod scene;
mod shape;

/// Timed iterations unless told otherwise.
const ITERATIONS: usize = 10;

/// Batches that the receiver has memory for: one is filled while the other is uploaded.
const BUFFERS: usize = 2;

/// The longest time limit, in seconds.
const LONGEST: f64 = 1e6;

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
    /// Receive batches from the network at this address instead of generating one (port 0: the system chooses). Each
    /// iteration then processes one batch.
    #[arg(long, value_name = "ADDR:PORT")]
    pub udp: Option<SocketAddr>,
    /// With --udp, end after this many seconds without a usable packet.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, allow_negative_numbers = true)]
    pub timeout: f64,
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
            udp: None,
            timeout: 10.0,
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
        if !(self.timeout > 0.0 && self.timeout <= LONGEST) {
            return Err(Error::input(format!(
                "--timeout {} is not above 0 and up to {LONGEST} seconds",
                self.timeout
            )));
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
        match delays.iter().find(|delay| delay.is_nan() || delay.abs() >= most) {
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

/// Searches a generated scene, or batches from the network.
///
/// # Errors
/// [`Error::Input`] for invalid options, or if no batch came from the network; else the APIs' errors.
pub fn run(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    options.check()?;
    match options.udp {
        None => run_generated(bridge, common, options),
        Some(address) => run_received(bridge, common, options, address),
    }
}

fn run_generated(bridge: &Bridge, common: &Common<'_>, options: &Options) -> Result<Outcome> {
    let shape = &options.shape;
    let scene = options.scene(common.seed);
    let batch = scene.batch(shape, 0);
    let share = match common.ranks {
        Some(ranks) => ranks.share(shape.blocks, "blocks", "raise --blocks")?,
        None => 0..shape.blocks,
    };
    let own = Shape {
        blocks: share.len(),
        ..shape.clone()
    };
    let (mut search, kernels) = open(bridge, common, options, &own, &scene.skew)?;
    let of_a_block = shape.channels * shape.samples;
    search.load(&batch[share.start * of_a_block..share.end * of_a_block])?;
    let mut timer = common.timer(ITERATIONS);
    let copies = timer.run(bridge, |timer| search.run(timer, options.launch.waits))?;

    let mut outcome = judge(&search, options, &scene.skew, &batch, kernels, timer, copies)?;
    let targets = outcome.targets.as_deref().unwrap_or_default();
    let complaints = peaks::compare(shape, &scene.echoes, targets, options.peaks);
    outcome.truth_ok = Some(complaints.is_empty());
    outcome.notes.push(format!("generated: {} echoes", scene.echoes.len()));
    outcome.notes.extend(complaints);
    Ok(outcome)
}

/// An iteration is a batch. The last one is verified.
fn run_received(bridge: &Bridge, common: &Common<'_>, options: &Options, address: SocketAddr) -> Result<Outcome> {
    let shape = &options.shape;
    let skew = match &options.delays {
        Some(delays) => delays.clone(),
        None => vec![0.0; shape.channels],
    };
    let (mut search, kernels) = open(bridge, common, options, shape, &skew)?;
    // what is loaded on first use is not to keep the first batch waiting
    search.load(&vec![C32::ZERO; shape.batch()])?;
    search.run(&mut StageTimer::new(1, 0), options.launch.waits)?;

    let wanted = common.iterations.unwrap_or(ITERATIONS);
    let mut timer = StageTimer::new(wanted, 0).plant(common.plant_copy);
    let memory = (0..BUFFERS)
        .map(|_| Ok(bridge.hip_device().alloc_pinned(shape.batch())?))
        .collect::<Result<Vec<_>>>()?;
    let limit = Duration::from_secs_f64(options.timeout);
    let receiver = Receiver::start(address, shape.geometry(), memory, limit)?;
    let address = receiver.address();
    print(&format!("listening on {address}\n"))?;
    let upload = match kernels.0 {
        Kernels::Queue => ApiName::OpenCl,
        Kernels::Stream => ApiName::Hip,
    };
    let mut last = None;
    let copies = timer.run_while(bridge, |timer| {
        let Some(batch) = receiver.next()? else {
            return Ok(false);
        };
        timer.begin();
        let samples = batch.storage.host()?;
        search.load(samples)?;
        let traffic = 2 * size_of_val(samples) as u64;
        timer.keep("upload", upload, traffic, timer.elapsed());
        receiver.give_back(batch.storage);
        search.run(timer, options.launch.waits)?;
        last = Some((batch.number, batch.missing));
        Ok(true)
    })?;
    let received = receiver.received();
    let network = Network::new(&receiver);
    drop(receiver);
    let Some((number, missing)) = last else {
        let counts = received.counts;
        return Err(Error::input(match counts.packets() {
            0 => format!(
                "no packet came to {address} within {} s; start the sender, and check its address and the firewall",
                options.timeout
            ),
            packets => format!(
                "no batch came to {address}: of {packets} packets {} were malformed and {} late; check that the sender has the same sizes",
                counts.malformed.total(),
                counts.late
            ),
        }));
    };

    let samples = search.samples()?;
    let mut outcome = judge(&search, options, &skew, &samples, kernels, timer, copies)?;
    let done = outcome.timer.iterations();
    outcome.notes.push(format!(
        "{missing} samples of the last batch, number {number}, were missing"
    ));
    if done < wanted {
        outcome.notes.push(format!(
            "ended after {done} of {wanted} batches: no packet that could be used for {} s",
            options.timeout
        ));
    }
    outcome.network = Some(network);
    Ok(outcome)
}

/// A search of this process's blocks where the user asked for it, recorded if it is to be a graph.
fn open<'a>(
    bridge: &Bridge,
    common: &Common<'a>,
    options: &Options,
    own: &Shape,
    skew: &[f64],
) -> Result<(Search<'a>, Choice)> {
    let make = |kernels| {
        let search = Search::new(bridge, kernels, own, skew, options.peaks)?;
        Ok(search.among(common.ranks, options.shape.blocks))
    };
    let (mut search, kernels) = options.launch.choose(common.route.is_some(), make)?;
    if options.launch.graph {
        search.record()?;
    }
    Ok((search, kernels))
}

/// The outcome of the last batch, compared with the reference.
fn judge(
    search: &Search<'_>,
    options: &Options,
    skew: &[f64],
    samples: &[C32],
    kernels: Choice,
    timer: StageTimer,
    copies: Counts,
) -> Result<Outcome> {
    let shape = &options.shape;
    let (found, map) = (search.found()?, search.map()?);
    let reference = Reference::new(shape, samples, skew);
    let targets = found.targets(shape);
    Ok(Outcome {
        route: search.route(),
        residency: search.residency(),
        kernels,
        expected_copies_bytes: search.expected_copies_bytes() * timer.iterations() as u64,
        timer,
        copies,
        max_rel_error: reference.map_error(&map).max(reference.target_error(&found)),
        tolerance: TOLERANCE,
        satellites: None,
        emitters: None,
        picture: picture(shape, &map, found.noise, &targets),
        targets: Some(targets),
        network: None,
        truth_ok: None,
        notes: Vec::new(),
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
