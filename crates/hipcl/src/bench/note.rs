//! The four kernels of `pipeline note`: strictly alternating with two sides, the same on one stream, and on several
//! data sets in flight.

use interop::Bridge;

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::jobs::note::{self, in_flight};
use crate::jobs::{Common, Kernels, Launch, Outcome, Waits};
use crate::{Error, Result};

const SLOTS: [usize; 5] = [1, 2, 8, 16, 32];
const RUNS: usize = 5;
/// Iterations of a run, over all its data sets.
const ON_A_CARD: usize = 640;
const ON_HOST: usize = 16;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let limit_gb_s = interop::measure::bandwidth(bridge)?.limit_gb_s;
    let samples = note::Options::default().samples;
    let limit_ms = |bytes: u64| bytes as f64 / limit_gb_s / 1e6;
    let on_host = bridge.report().platform.facts().is_model;
    let iterations = if on_host { ON_HOST } else { ON_A_CARD };
    let is = "its memory traffic at a copy kernel's bandwidth";

    let mut found = Figures::default();
    let two_sides = Launch {
        kernels: Some(Kernels::Queue),
        ..Launch::default()
    };
    let one_stream = |waits, graph| Launch {
        kernels: Some(Kernels::Stream),
        graph,
        waits,
    };
    let mut ways = vec![("strictly alternating, an iteration", two_sides)];
    match note::works_on_stream(bridge) {
        Err(why) => found.notes.push(format!("one stream: skipped: {}", why.one_line())),
        Ok(()) => ways.extend([
            (
                "one stream, waiting after each kernel, an iteration",
                one_stream(Waits::Stage, false),
            ),
            (
                "one stream, waiting after each side, an iteration",
                one_stream(Waits::Side, false),
            ),
            ("one stream, one wait an iteration", one_stream(Waits::Iteration, false)),
            (
                "one stream, a graph of two iterations, an iteration",
                one_stream(Waits::Iteration, true),
            ),
        ]),
    }
    for (name, launch) in ways {
        let (times, bytes) = (0..RUNS)
            .map(|seed| strictly(bridge, &launch, iterations.min(100), seed as u64))
            .collect::<Result<(Vec<_>, Vec<_>)>>()?;
        let line = Line::of(name, "ms", Better::Lower, times);
        found.lines.push(line.against(limit_ms(bytes[0]), is));
    }
    // On the host platform both sides are the same processors, whose memory is not for dozens of data sets.
    for slots in SLOTS.into_iter().filter(|slots| !on_host || *slots <= 8) {
        let (mut times, mut bytes) = (Vec::new(), 0);
        for seed in 0..RUNS {
            let rounds = iterations.div_ceil(slots);
            let run = in_flight::run(bridge, samples, slots, rounds, seed as u64)?;
            if !run.verified() {
                return Err(unverified(run.max_rel_error));
            }
            times.push(run.iteration.as_secs_f64() * 1e3);
            bytes = run.bytes;
        }
        found.lines.push(
            Line::of(format!("{slots} in flight, an iteration"), "ms", Better::Lower, times)
                .against(limit_ms(bytes), is),
        );
    }
    found.notes.push(format!(
        "{samples} samples; limit {:.1} GB/s; the data of every run was verified",
        limit_gb_s
    ));
    Ok(found)
}

/// Milliseconds and memory traffic of one iteration.
fn strictly(bridge: &Bridge, launch: &Launch, iterations: usize, seed: u64) -> Result<(f64, u64)> {
    let common = Common {
        iterations: Some(iterations),
        seed,
        ..Common::default()
    };
    let options = note::Options {
        launch: launch.clone(),
        ..note::Options::default()
    };
    let Outcome {
        timer,
        max_rel_error,
        tolerance,
        ..
    } = note::run(bridge, &common, &options)?;
    if max_rel_error <= tolerance {
        Ok((timer.iteration_median_us() / 1e3, timer.iteration_bytes()))
    } else {
        Err(unverified(max_rel_error))
    }
}

fn unverified(error: f64) -> Error {
    Error::input(format!(
        "the results of the measurement are wrong (relative error {error:.1e}), so its figures are invalid; run `hipcl doctor`"
    ))
}
