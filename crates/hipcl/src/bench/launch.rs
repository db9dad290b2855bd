//! Empty kernels: one with its wait, and one among many.

use interop::measure::{self, LaunchCost, StreamLaunchCost};

use super::line::{Better, Line};
use super::{Figures, Setup, not_on_stream};
use crate::Result;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let (opencl, hip) = measure::launch(&setup.bridge)?;
    let mut found = Figures::default();
    for (api, cost) in [("OpenCL", opencl), ("HIP", hip)] {
        let LaunchCost {
            waited_us,
            waited_p99_us,
            queued_us,
            queued_p99_us,
        } = cost;
        found.lines.push(
            Line::known(format!("{api}, and the wait"), "us", Better::Lower, waited_us)
                .up_to(waited_p99_us)
                .against(queued_us, "the same kernel in a busy queue"),
        );
        found.lines.push(
            Line::known(format!("{api}, of 64 queued"), "us", Better::Lower, queued_us)
                .up_to(queued_p99_us)
                .against(opencl.queued_us.min(hip.queued_us), "the quicker of the two APIs"),
        );
    }
    match measure::launch_on_stream(&setup.bridge) {
        Ok(cost) => on_stream(&cost, &hip, &mut found),
        Err(why) => found.notes.push(not_on_stream(&why)),
    }
    Ok(found)
}

/// An OpenCL kernel on a HIP stream, against a HIP kernel.
fn on_stream(cost: &StreamLaunchCost, hip: &LaunchCost, found: &mut Figures) {
    let line = |name: &str, us, p99_us| Line::known(name, "us", Better::Lower, us).up_to(p99_us);
    let StreamLaunchCost { launch, call } = cost;
    found.lines.push(
        line(
            "OpenCL's kernel on a stream, and the wait",
            launch.waited_us,
            launch.waited_p99_us,
        )
        .against(hip.waited_us, "HIP's own kernel"),
    );
    found.lines.push(
        line(
            "OpenCL's kernel on a stream, of 64 queued",
            launch.queued_us,
            launch.queued_p99_us,
        )
        .against(hip.queued_us, "HIP's own kernel"),
    );
    if let Some(call) = call {
        let name = "StreamKernel::launch, the call alone";
        found.lines.push(
            Line::known(name, "ns", Better::Lower, call.ns)
                .up_to(call.p99_ns)
                .against(call.raw_ns, "hipModuleLaunchKernel of the same code"),
        );
        let added = format!("{name} takes {:.0} ns more than hipModuleLaunchKernel", call.added_ns);
        found.notes.push(added);
    }
}
