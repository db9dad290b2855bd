//! One route, grade, carrier or allocation, or one stream, tried by itself, for a process that may not survive it.

mod allocation;
mod carrier;
mod grade;
mod stream;
mod survival;

use std::fmt;
use std::path::PathBuf;

pub use allocation::AllocationTrial;
pub use carrier::CarrierTrial;
pub use grade::GradeTrial;
use platform::Selection;
pub use stream::StreamTrial;

use crate::backing::survival::Survival;
use crate::bridge::open::{Libraries, Pair, Ready};
use crate::bridge::pairing;
use crate::diagnose::measure::{self, Bandwidth, DirectionCost};
use crate::values::{Pairing, RouteReport};
use crate::{Bridge, Direction, Error, Grade, Options, Residency, Result, Route};

/// How far a trial goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Whether it works.
    Proof,
    /// Also what it costs, measured. On an emulated device this takes most of the time and says nothing.
    Figures,
}

/// The outcome of one route between two devices, and its cost.
///
/// [`Bridge::open`] tries every route in the process that calls it, and a driver that crashes or
/// hangs on one of them takes the process along. On an unknown machine, try each route in a process of its own instead.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Name of the HIP device.
    pub hip_device: String,
    /// Name of the OpenCL device.
    pub opencl_device: String,
    /// Why the two are taken for the same device.
    pub pairing: Pairing,
    /// Where compiled OpenCL programs are cached, if they are.
    pub program_cache: Option<PathBuf>,
    /// The crossings made, each with what went wrong.
    pub crossings: Vec<(Direction, Result<(), String>)>,
    /// The route as a whole: crossings, hidden copies, addresses.
    pub report: RouteReport,
    /// Its cost, where it works and was asked for; or why that could not be measured.
    pub figures: Option<Result<Figures, String>>,
}

/// What a route costs, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The hand-off that was measured.
    pub grade: Grade,
    /// Microseconds to hand over, in each direction.
    pub handoff: DirectionCost,
    /// Bandwidth of a kernel of each API that reads and writes the route's memory.
    pub bandwidth: Bandwidth,
}

/// What a trial is about to do: the last one reported is where a process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Load both APIs and find devices that pair.
    Pair,
    /// Compile the kernels and allocate on the route.
    Allocate,
    /// Write by one API and read by the other.
    Cross(Direction),
    /// Make a buffer object of HIP memory.
    Wrap,
    /// Allocate and work on streams after an export of memory.
    Survive,
    /// Share the memory with a second process.
    Share,
    /// Write and read by OpenCL transfers.
    Transfer,
    /// Release the memory.
    Release,
    /// Measure the cost of a hand-off.
    Handoff,
    /// Measure the memory's bandwidth.
    Bandwidth,
    /// Query where memory lies.
    Locate,
    /// Use it from OpenCL kernels, and measure how fast.
    UseByOpenCl,
    /// Use it from HIP kernels, and measure how fast.
    UseByHip,
    /// Load OpenCL code into HIP and run it.
    Load,
    /// Measure launches of it.
    Launch,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair => f.write_str("pairing the devices"),
            Self::Allocate => f.write_str("allocating"),
            Self::Cross(direction) => write!(f, "passing a pattern from {direction}"),
            Self::Wrap => f.write_str("creating a buffer object over HIP memory"),
            Self::Survive => f.write_str("allocating after an export"),
            Self::Share => f.write_str("sharing memory with a second process"),
            Self::Transfer => f.write_str("transferring with OpenCL"),
            Self::Release => f.write_str("releasing the memory"),
            Self::Handoff => f.write_str("timing the hand-off"),
            Self::Bandwidth => f.write_str("timing the memory"),
            Self::Locate => f.write_str("locating the memory"),
            Self::UseByOpenCl => f.write_str("using the memory with OpenCL"),
            Self::UseByHip => f.write_str("using the memory with HIP"),
            Self::Load => f.write_str("running an OpenCL kernel on a HIP stream"),
            Self::Launch => f.write_str("timing OpenCL kernels on a HIP stream"),
        }
    }
}

impl Trial {
    /// Tries only `route` between the two devices that `options` describes; its `route` and `policy` play no part.
    /// Where several OpenCL devices may be the HIP device, they are tried in turn until the route works with one.
    /// `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, or the probe's kernels do not compile. It is no error if the
    /// route does not work.
    pub fn run(
        selection: &Selection,
        options: &Options,
        route: Route,
        extent: Extent,
        observe: impl FnMut(Step),
    ) -> Result<Self> {
        // SAFETY: the hook changes no table.
        unsafe { Self::run_with(selection, options, (route, extent), |_| {}, observe) }
    }

    /// As [`run`](Self::run); `hook` sees each OpenCL library's table, as in [`Bridge::open_with`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Safety
    /// As [`clmgr::Manager::load_with`].
    pub unsafe fn run_with(
        selection: &Selection,
        options: &Options,
        (route, extent): (Route, Extent),
        hook: impl Fn(&mut clmgr::Api),
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        // SAFETY: the caller's promise.
        let libraries = unsafe { Libraries::load_with(selection, hook) }?;
        on_each_pair(
            &libraries,
            options,
            |pair| one(&libraries, pair, options, (route, extent), &mut observe),
            |trial| trial.report.works(),
        )
    }
}

/// The first trial that is good, on the pairs in turn; else the first of all.
fn on_each_pair<T>(
    libraries: &Libraries<'_>,
    options: &Options,
    mut on: impl FnMut(Pair) -> Result<T>,
    is_good: impl Fn(&T) -> bool,
) -> Result<T> {
    let (hip, candidates) = candidates(libraries, options)?;
    let mut first = None;
    for (device, paired_by) in candidates {
        match Pair::new(&device, &hip, paired_by).and_then(&mut on) {
            Ok(trial) if is_good(&trial) => return Ok(trial),
            other => first.get_or_insert(other),
        };
    }
    first.unwrap_or(Err(Error::NotPossible { tried: Vec::new() }))
}

/// What two processes do that have to choose the same devices.
fn on_first_pair<T>(libraries: &Libraries<'_>, options: &Options, on: impl FnOnce(Pair) -> Result<T>) -> Result<T> {
    let (hip, candidates) = candidates(libraries, options)?;
    match candidates.into_iter().next() {
        Some((device, paired_by)) => on(Pair::new(&device, &hip, paired_by)?),
        None => Err(Error::NotPossible { tried: Vec::new() }),
    }
}

/// The HIP device, and the OpenCL devices that may be the same.
fn candidates(libraries: &Libraries<'_>, options: &Options) -> Result<(hip::Device, Vec<(clmgr::Device, Pairing)>)> {
    let hip = libraries.hip.device(options.hip_device.unwrap_or(0))?;
    let devices = libraries.manager.devices();
    let candidates = pairing::candidates(libraries.platform(), &hip, &devices, options.opencl_device)?;
    Ok((hip, candidates))
}

/// A bridge that takes turns by the host and copies. Its route is not proven: the trial proves what it is about.
fn bridge_by_host(libraries: &Libraries<'_>, pair: Pair, options: &Options) -> Result<Bridge> {
    let route = Route::Staging;
    let named = Options {
        route: Some(route),
        grade: None,
        // The process was started to find out.
        force_dma_buf: true,
        ..options.clone()
    };
    let ready = libraries.ready(pair, &named)?;
    let report = RouteReport::of(route, Ok(Residency::Unknown));
    libraries.finish(ready, vec![report], &named, &[Grade::Host])
}

fn one(
    libraries: &Libraries<'_>,
    pair: Pair,
    options: &Options,
    (route, extent): (Route, Extent),
    observe: &mut impl FnMut(Step),
) -> Result<Trial> {
    observe(Step::Allocate);
    // The process was started to find out.
    let forced = Options {
        force_dma_buf: true,
        ..options.clone()
    };
    let ready = libraries.ready(pair, &forced)?;
    let survival = (route == Route::DmaBuf).then(|| Survival::of(&ready.core));
    if let Some(survival) = &survival {
        survival.begin();
    }
    let mut crossings = Vec::new();
    let proof = ready.probe.cross_all(&ready.core, route, |direction, cross| {
        observe(Step::Cross(direction));
        let outcome = cross();
        let told = outcome.as_ref().map_err(ToString::to_string).copied();
        crossings.push((direction, told));
        outcome
    });
    let proof = match (&survival, proof) {
        (Some(survival), Ok(residency)) => {
            observe(Step::Survive);
            survival::exercise(&ready.core).map(|()| {
                survival.survived();
                residency
            })
        }
        (_, proof) => proof,
    };
    let mut trial = Trial {
        hip_device: ready.core.hip_device.name()?,
        opencl_device: ready.core.context.device().name().trim().to_owned(),
        pairing: ready.paired_by.clone(),
        program_cache: ready.core.programs.folder().map(ToOwned::to_owned),
        crossings,
        report: RouteReport::of(route, proof),
        figures: None,
    };
    if trial.report.works() && extent == Extent::Figures {
        let figures = measure(libraries, ready, options, &trial.report, observe);
        trial.figures = Some(figures.map_err(|error| error.to_string()));
    }
    Ok(trial)
}

fn measure(
    libraries: &Libraries<'_>,
    ready: Ready,
    options: &Options,
    report: &RouteReport,
    observe: &mut impl FnMut(Step),
) -> Result<Figures> {
    observe(Step::Handoff);
    let named = Options {
        route: Some(report.route),
        ..options.clone()
    };
    // The other grades have trials of their own: one that hangs must not cost the route its figures.
    let grades = [Grade::Host];
    let bridge: Bridge = libraries.finish(ready, vec![report.clone()], &named, &grades)?;
    let handoff = measure::handoff_by_direction(&bridge)?;
    observe(Step::Bandwidth);
    Ok(Figures {
        grade: bridge.grade(),
        handoff,
        bandwidth: measure::bandwidth_briefly(&bridge)?,
    })
}
