//! OpenCL transforms on shared memory, against one read and one write of it.

use clmgr::fft::{Direction, Plan};

use super::line::{Better, Line};
use super::{Found, Ground, per_second, seconds};
use crate::{C32, Result};

const SIZES: [(usize, usize); 4] = [(64, 1 << 16), (1024, 1 << 12), (4000, 1024), (1 << 22, 1)];
const SAMPLES: usize = 15;

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let bridge = &ground.bridge;
    let limit = interop::measure::bandwidth(bridge)?.limit_gb_s;
    let queue = bridge.queue()?;
    let mut found = Found::default();
    for (len, batch) in SIZES {
        let plan = Plan::new(bridge.cl_context(), bridge.programs(), len, batch)?;
        plan.prepare(Direction::Forward)?;
        let mut from = bridge.alloc::<C32>(len * batch)?;
        let mut to = bridge.alloc::<C32>(len * batch)?;
        from.upload(&vec![C32::new(1.0, 0.0); len * batch])?;
        let (from, to) = (from.cl(&queue)?, to.cl_mut(&queue)?);
        let times = seconds(SAMPLES, || {
            // SAFETY: both hold the plan's data, and nothing else uses them.
            unsafe { plan.enqueue(&queue, Direction::Forward, from.arg(), to.arg()) }?;
            Ok(queue.finish()?)
        })?;
        found.lines.push(
            Line::of(
                format!("{len} x {batch}, {}", plan.way()),
                "GB/s",
                Better::Higher,
                per_second(plan.bytes_moved() as f64, &times),
            )
            .against(limit, "a copy kernel on this memory"),
        );
    }
    Ok(found)
}
