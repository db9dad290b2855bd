//! Passing a buffer from one API to the other and back, minus the cost of the same kernels in one API.

use interop::measure;

use super::line::{Better, Line};
use super::{Figures, Setup, not_on_stream};
use crate::Result;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let (opencl, hip) = measure::launch(bridge)?;
    let waited = f64::midpoint(opencl.waited_us, hip.waited_us);
    let queued = f64::midpoint(opencl.queued_us, hip.queued_us);
    let mut found = Figures::default();
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
        let idle = line(format!("{grade}, idle queues"), &cost);
        found.lines.push(match cost.by_hand_us {
            Some(by_hand) => idle.against(by_hand, "the same rounds written by hand, with waits"),
            None => idle,
        });
        // How much of it is a wait, which every program pays, and how much the change of side itself.
        if let Some(by_hand) = cost.by_hand_us {
            let wait = waited - queued;
            let change = (by_hand - wait).max(0.0);
            found.notes.push(format!(
                "{grade}: by hand {by_hand:.1} us, of which {wait:.1} us wait for a kernel and {change:.1} us are the device's switch between the APIs ({:.0} %)",
                100.0 * change / by_hand.max(f64::MIN_POSITIVE)
            ));
        }
        match measure::handoff_busy(&bridge)? {
            Some(cost) => found.lines.push(
                line(format!("{grade}, busy queues"), &cost)
                    .against(queued, "an empty kernel in a busy queue, mean of both APIs"),
            ),
            None => found
                .notes
                .push(format!("{grade}: cannot queue ahead, so its queues are never busy")),
        }
    }
    match measure::handoff_on_stream(bridge) {
        Ok(cost) => found.lines.push(
            Line::known("one stream", "us", Better::Lower, cost.median_us)
                .up_to(cost.p99_us)
                .against(cost.kernel_us, "an empty kernel in a busy queue, mean of both APIs"),
        ),
        Err(why) => found.notes.push(not_on_stream(&why)),
    }
    Ok(found)
}
