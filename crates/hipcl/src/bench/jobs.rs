//! The jobs `gps` and `capon`: with OpenCL kernels on a queue, on one stream, and as graphs.

use interop::Bridge;

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::jobs::{Common, Kernels, Launch, Outcome, Waits, capon, gps};
use crate::timing::Rates;
use crate::{Error, Result};

/// Runs of each way, in turns, each over another generated input.
const RUNS: usize = 3;

/// A job with these options of all jobs.
type Run<'a> = &'a dyn Fn(&Common, Launch) -> Result<Outcome>;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let on_host = bridge.report().platform.facts().is_model;
    let gps = gps_options(on_host);
    let capon = capon_options(on_host);
    let iterations = if on_host { 3 } else { 50 };
    let mut found = Figures::default();
    let jobs: [(&str, Run<'_>); 2] = [
        ("gps", &|common, launch| {
            let options = gps::Options { launch, ..gps.clone() };
            gps::run(bridge, common, &options)
        }),
        ("capon", &|common, launch| {
            let options = capon::Options {
                launch,
                ..capon.clone()
            };
            capon::run(bridge, common, &options)
        }),
    ];
    for (job, run) in jobs {
        measure_job(bridge, job, run, iterations, &mut found)?;
    }
    found.notes.push(format!(
        "{RUNS} alternating runs of {iterations} iterations each; every run verified"
    ));
    Ok(found)
}

/// The published sizes on a card; on the host platform what its processors do in moments.
fn gps_options(on_host: bool) -> gps::Options {
    gps::Options {
        rate: on_host.then_some(2e6),
        doppler_max: if on_host { 1000.0 } else { 5000.0 },
        ..gps::Options::default()
    }
}

fn capon_options(on_host: bool) -> capon::Options {
    let default = capon::Options::default();
    capon::Options {
        elements: if on_host { 48 } else { default.elements },
        segments: if on_host { 256 } else { default.segments },
        ..default
    }
}

/// One way to run a job, and what was measured of it.
struct Variant {
    name: &'static str,
    launch: Launch,
    times_ms: Vec<f64>,
    /// The stages' own times of one run, added up.
    stages_ms: f64,
}

impl Variant {
    fn new(name: &'static str, kernels: Kernels, waits: Waits, graph: bool) -> Self {
        Self {
            name,
            launch: Launch {
                kernels: Some(kernels),
                graph,
                waits,
            },
            times_ms: Vec::with_capacity(RUNS),
            stages_ms: 0.0,
        }
    }
}

fn measure_job(bridge: &Bridge, job: &str, run: Run<'_>, iterations: usize, found: &mut Figures) -> Result<()> {
    let (queue, stream) = (Kernels::Queue, Kernels::Stream);
    let mut ways = vec![
        Variant::new("queue, waiting after each stage", queue, Waits::Stage, false),
        Variant::new("stream, waiting after each stage", stream, Waits::Stage, false),
        Variant::new("stream, waiting once", stream, Waits::Iteration, false),
        Variant::new("stream, graph", stream, Waits::Iteration, true),
    ];
    let mut bytes = 0;
    for seed in 1..=RUNS as u64 {
        let common = Common {
            iterations: Some(iterations),
            seed,
            ..Common::default()
        };
        let mut skipped = Vec::new();
        for way in &mut ways {
            let outcome = match run(&common, way.launch.clone()) {
                Err(error) if way.launch.kernels == Some(stream) && way.times_ms.is_empty() => {
                    skipped.push(way.name);
                    let why = error.one_line();
                    found.notes.push(format!("{job}, {}: skipped: {why}", way.name));
                    continue;
                }
                outcome => outcome?,
            };
            if !outcome.verified() {
                return Err(Error::input(format!(
                    "`pipeline {job}` ({}) did not verify, so its figures are invalid; run `hipcl doctor`",
                    way.name
                )));
            }
            let stages = outcome.timer.stages(Rates::default());
            way.stages_ms = stages.iter().map(|stage| stage.median_us / 1e3).sum();
            way.times_ms.push(outcome.timer.iteration_median_us() / 1e3);
            if seed == 1 && way.launch.kernels == Some(queue) {
                bytes = outcome.timer.iteration_bytes();
            }
        }
        ways.retain(|way| !skipped.contains(&way.name));
    }
    let limit_gb_s = interop::measure::bandwidth(bridge)?.limit_gb_s;
    let mut of_queue = None;
    for way in ways {
        let name = format!("{job}, {}", way.name);
        if way.launch.waits == Waits::Stage {
            let of_last = way.times_ms.last().copied().unwrap_or_default();
            found.notes.push(format!(
                "{name}: the stages take {:.3} ms of the {of_last:.3} ms of the last run",
                way.stages_ms
            ));
        }
        let line = Line::of(name, "ms", Better::Lower, way.times_ms);
        let value = line.value;
        found.lines.push(match of_queue {
            None => {
                let limit_ms = bytes as f64 / limit_gb_s / 1e6;
                line.against(limit_ms, "its memory traffic at a copy kernel's bandwidth")
            }
            Some(of_queue) => line.against(of_queue, "the queue, in turns"),
        });
        of_queue.get_or_insert(value);
    }
    Ok(())
}
