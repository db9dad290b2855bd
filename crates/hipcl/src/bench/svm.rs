//! The four small kernels of `pipeline note` on four kinds of memory. Their published time, 14.0 ms, is a host link's;
//! this shows which kind of memory has it.

use interop::{Bridge, Route};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::jobs::note::{self, two_devices};
use crate::jobs::{Common, Kernels, Launch, Outcome};
use crate::{Error, Result};

const ITERATIONS: usize = 20;

/// What an MI100 should need, in milliseconds: memory behind its link, and memory of its own with four launches and
/// four waits. Computed: 251.7 MB over a link that reads 13.7 GB/s and writes 28 GB/s, or over 1.2 TB/s.
const MI100_LINK: f64 = 14.0;
const MI100_OWN: f64 = 0.3;

/// A kind of memory.
struct Kind {
    name: &'static str,
    route: Option<Route>,
    mi100: f64,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "fine-grain SVM",
        route: Some(Route::SvmFine),
        mi100: MI100_LINK,
    },
    Kind {
        name: "coarse SVM",
        route: Some(Route::SvmCoarse),
        mi100: MI100_OWN,
    },
    Kind {
        name: "coarse SVM, context of two devices",
        route: None,
        mi100: MI100_LINK,
    },
    Kind {
        name: "HIP's pointer",
        route: Some(Route::HipPointer),
        mi100: MI100_OWN,
    },
];

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let mut found = Figures::default();
    let on_mi100 = setup.bridge.hip_device().arch()?.starts_with("gfx908");
    let bytes = note::traffic(note::Options::default().samples);
    // where there is no prediction, the traffic at the speed that the memory was measured to have
    let limit_gb_s = match on_mi100 {
        true => None,
        false => Some(interop::measure::bandwidth(&setup.bridge)?.limit_gb_s),
    };
    for kind in &KINDS {
        let outcome = match kind.route {
            Some(route) => match setup.on_route(route) {
                Ok(bridge) => on_route(&bridge).map(Ok),
                Err(error) => Ok(Err(error.one_line())),
            },
            None => in_two(setup),
        }?;
        let (times, place) = match outcome {
            Ok(measured) => measured,
            Err(reason) => {
                found.notes.push(format!("{}: skipped: {reason}", kind.name));
                continue;
            }
        };
        let line = Line::of(kind.name, "ms", Better::Lower, times);
        let rate = bytes as f64 / line.value / 1e6;
        found.notes.push(format!("{}: {rate:.1} GB/s, {place}", kind.name));
        found.lines.push(match limit_gb_s {
            None => line.against(kind.mi100, "predicted for an MI100"),
            Some(limit) => line.against(
                bytes as f64 / limit / 1e6,
                "its memory traffic at a copy kernel's bandwidth",
            ),
        });
    }
    if found.lines.is_empty() {
        return Err(Error::input(format!(
            "none of the four kinds of memory works here: {}",
            found.notes.join("; ")
        )));
    }
    found.notes.push(format!(
        "{:.1} MB of traffic per iteration, with a wait after each kernel; published: {:.1} ms; the data of every run was verified",
        bytes as f64 / 1e6,
        note::PUBLISHED_MS
    ));
    Ok(found)
}

type Measured = std::result::Result<(Vec<f64>, String), String>;

/// Milliseconds of each iteration, and where the memory lies.
fn on_route(bridge: &Bridge) -> Result<(Vec<f64>, String)> {
    let common = Common {
        iterations: Some(ITERATIONS),
        seed: 1,
        ..Common::default()
    };
    // Each side reaches the memory by itself.
    let options = note::Options {
        launch: Launch {
            kernels: Some(Kernels::Queue),
            ..Launch::default()
        },
        ..note::Options::default()
    };
    let Outcome {
        timer,
        max_rel_error,
        tolerance,
        residency,
        ..
    } = note::run(bridge, &common, &options)?;
    if max_rel_error <= tolerance {
        let times = timer.iterations_us().map(|us| us / 1e3).collect();
        return Ok((times, format!("residency {residency}")));
    }
    Err(wrong())
}

fn in_two(setup: &Setup) -> Result<Measured> {
    if !setup.selection.platform().facts().one_address_space {
        return Ok(Err("OpenCL and HIP have separate address spaces on the GPU".into()));
    }
    let bridge = &setup.bridge;
    let foreign = setup.selection.tables().foreign;
    let samples = note::Options::default().samples;
    Ok(match two_devices::run(bridge, foreign, samples, ITERATIONS)? {
        Ok(run) if run.verified => Ok((run.times_ms, run.devices)),
        Ok(_) => return Err(wrong()),
        Err(reason) => Err(reason),
    })
}

fn wrong() -> Error {
    Error::input("the results of the measurement are wrong; run `hipcl doctor`")
}
