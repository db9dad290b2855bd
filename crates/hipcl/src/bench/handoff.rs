//! Passing a buffer from one API to the other and back, minus the same kernels in one API.

use interop::measure;

use super::line::{Better, Line};
use super::{Found, Ground};
use crate::Result;

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let bridge = &ground.bridge;
    let (opencl, hip) = measure::launch(bridge)?;
    let waited = f64::midpoint(opencl.waited_us, hip.waited_us);
    let queued = f64::midpoint(opencl.queued_us, hip.queued_us);
    let mut found = Found::default();
    for report in bridge.grades() {
        let grade = report.grade;
        match &report.outcome {
            Ok(how) => found.notes.push(format!("{grade}: {how}")),
            Err(reason) => {
                found.notes.push(format!("{grade}: not possible: {reason}"));
                continue;
            }
        }
        let bridge = bridge.with_grade(grade)?;
        let cost = measure::handoff(&bridge)?;
        let line = |name: String, cost: &measure::HandoffCost| {
            Line::known(name, "us", Better::Lower, cost.median_us).up_to(cost.p99_us)
        };
        found
            .lines
            .push(line(format!("{grade}, idle queues"), &cost).against(
                waited,
                "an empty kernel and the wait for it, mean of both APIs",
            ));
        match measure::handoff_busy(&bridge)? {
            Some(cost) => found
                .lines
                .push(line(format!("{grade}, busy queues"), &cost).against(
                    queued,
                    "an empty kernel queued among others, mean of both APIs",
                )),
            None => found.notes.push(format!(
                "{grade}: cannot queue ahead, so its queues are never busy"
            )),
        }
    }
    Ok(found)
}
