//! Empty kernels: one and the wait for it, and one among many.

use interop::measure::{self, LaunchCost};

use super::line::{Better, Line};
use super::{Found, Ground};
use crate::Result;

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let (opencl, hip) = measure::launch(&ground.bridge)?;
    let mut found = Found::default();
    for (api, cost) in [("OpenCL", opencl), ("HIP", hip)] {
        let LaunchCost {
            waited_us,
            waited_p99_us,
            queued_us,
            queued_p99_us,
        } = cost;
        found.lines.push(
            Line::known(
                format!("{api}, and the wait"),
                "us",
                Better::Lower,
                waited_us,
            )
            .up_to(waited_p99_us)
            .against(queued_us, "the same kernel among others"),
        );
        found.lines.push(
            Line::known(
                format!("{api}, of 64 queued"),
                "us",
                Better::Lower,
                queued_us,
            )
            .up_to(queued_p99_us)
            .against(
                opencl.queued_us.min(hip.queued_us),
                "the quicker of the two APIs",
            ),
        );
    }
    Ok(found)
}
