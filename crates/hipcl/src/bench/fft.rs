//! OpenCL transforms on shared memory, against one read and one write of it, in turns with other libraries.

use clmgr::fft::{Direction, Plan};
use interop::Shared;

use super::line::{Better, Line};
use super::peer::{self, Transform};
use super::{Found, Ground, in_turns, per_second, same_result};
use crate::{C32, Result};

const SIZES: [(usize, usize); 6] = [
    (64, 1 << 16),
    (1024, 1 << 12),
    (4000, 1024),
    (1 << 16, 64),
    (1 << 20, 4),
    (1 << 22, 1),
];
/// Of 256 MiB each, so that a card's cache holds a small part.
const ON_A_CARD: [(usize, usize); 5] = [
    (1 << 16, 512),
    (1 << 18, 128),
    (1 << 20, 32),
    (1 << 22, 8),
    (1 << 22, 32),
];
const SAMPLES: usize = 15;

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let bridge = &ground.bridge;
    let limit = interop::measure::bandwidth(bridge)?.limit_gb_s;
    let on_host = bridge.report().platform == platform::Platform::Host;
    let mut found = Found::default();
    let more = ON_A_CARD.into_iter().filter(|_| !on_host);
    for (len, batch) in SIZES.into_iter().chain(more) {
        transforms(ground, limit, len, batch, &mut found)?;
    }
    found.notes.dedup();
    Ok(found)
}

fn transforms(
    ground: &Ground,
    limit: f64,
    len: usize,
    batch: usize,
    found: &mut Found,
) -> Result<()> {
    let bridge = &ground.bridge;
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), len, batch)?;
    plan.prepare(Direction::Forward)?;
    let mut from = bridge.alloc::<C32>(len * batch)?;
    let mut to = bridge.alloc::<C32>(len * batch)?;
    let number = |i: usize| C32::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0);
    let numbers: Vec<_> = (0..len * batch).map(number).collect();
    from.upload(&numbers)?;
    let transform = Transform {
        len,
        batch,
        from: from.hip_mut(&stream)?.slice_mut().as_mut_ptr(),
        to: to.hip_mut(&stream)?.slice_mut().as_mut_ptr(),
    };
    let run = |from: &Shared<C32>, to: &mut Shared<C32>| {
        let (from, to) = (from.cl(&queue)?, to.cl_mut(&queue)?);
        // SAFETY: both hold the plan's data, and nothing else uses them.
        unsafe { plan.enqueue(&queue, Direction::Forward, from.arg(), to.arg()) }?;
        Ok(queue.finish()?)
    };
    let mut ours = || run(&from, &mut to);
    let peers = peer::transforms(bridge, &stream, len, batch);
    let mut theirs: Vec<_> = peers
        .found
        .iter()
        .map(|peer| {
            let stream = &stream;
            move || {
                // SAFETY: both buffers hold the plan's data, and queue and stream are idle between the turns.
                unsafe { peer.run(&transform) }?;
                Ok(stream.synchronize()?)
            }
        })
        .collect();
    let mut turns: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut ours];
    turns.extend(theirs.iter_mut().map(|turn| turn as _));
    let mut times = in_turns(SAMPLES, &mut turns)?.into_iter();
    drop(turns);
    // A peer may use its input as scratch memory.
    from.upload(&numbers)?;
    run(&from, &mut to)?;
    let mut result = vec![C32::default(); len * batch];
    to.download(&mut result)?;
    let mut other = vec![C32::default(); len * batch];
    for (turn, peer) in theirs.iter_mut().zip(&peers.found) {
        from.upload(&numbers)?;
        to.upload(&other)?;
        turn()?;
        to.download(&mut other)?;
        same_result("fft", &peer.name(), &result, &other)?;
    }
    let line = |name: String, times: Vec<f64>| {
        let rates = per_second(plan.bytes_moved() as f64, &times);
        Line::of(name, "GB/s", Better::Higher, rates).against(limit, "a copy kernel on this memory")
    };
    found.lines.push(line(
        format!("{len} x {batch}, {} ({} passes)", plan.way(), plan.passes()),
        times.next().unwrap_or_default(),
    ));
    let peers_times = peers.found.iter().zip(times);
    let lines =
        peers_times.map(|(peer, times)| line(format!("{len} x {batch}, {}", peer.name()), times));
    found.lines.extend(lines);
    found.notes.extend(peers.missing);
    Ok(())
}
