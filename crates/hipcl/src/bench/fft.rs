//! OpenCL transforms on shared memory, against one read and one write of it, in turns with other libraries.

use clmgr_fft::{Builder, Direction, Plan, Sample};
use interop::Shared;

use super::line::{Better, Line};
use super::peer::{self, Transform};
use super::{Figures, Setup, in_turns, not_on_stream, per_second, same_result};
use crate::{C32, Result};

const SIZES: [(usize, usize); 6] = [
    (64, 1 << 16),
    (1024, 1 << 12),
    (4000, 1024),
    (1 << 16, 64),
    (1 << 20, 4),
    (1 << 22, 1),
];
/// Of 256 MiB each, so a card's cache holds a small part.
const ON_A_CARD: [(usize, usize); 5] = [
    (1 << 16, 512),
    (1 << 18, 128),
    (1 << 20, 32),
    (1 << 22, 8),
    (1 << 22, 32),
];
const SAMPLES: usize = 15;

/// A transform from the first to the second, and the wait for it.
type Way<'a> = dyn Fn(&Shared<C32>, &mut Shared<C32>) -> Result<()> + 'a;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let limit = interop::measure::bandwidth(bridge)?.limit_gb_s;
    let on_host = bridge.report().platform.facts().is_model;
    let mut found = Figures::default();
    let more = ON_A_CARD.into_iter().filter(|_| !on_host);
    for (len, batch) in SIZES.into_iter().chain(more) {
        transforms(setup, limit, len, batch, &mut found)?;
    }
    let mut cases = Cases {
        setup,
        limit,
        found: &mut found,
    };
    cases.measure_all()?;
    found.notes.dedup();
    Ok(found)
}

fn transforms(setup: &Setup, limit: f64, len: usize, batch: usize, found: &mut Figures) -> Result<()> {
    let bridge = &setup.bridge;
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
    let on_queue = |from: &Shared<C32>, to: &mut Shared<C32>| {
        let (from, to) = (from.cl(&queue)?, to.cl_mut(&queue)?);
        // SAFETY: both hold the plan's data, and nothing else uses them.
        unsafe { plan.enqueue(&queue, Direction::Forward, from.arg(), to.arg()) }?;
        Ok(queue.finish()?)
    };
    let fft = bridge.stream_fft(&plan)?;
    let on_stream = |from: &Shared<C32>, to: &mut Shared<C32>| {
        let (from, mut to) = (from.hip(&stream)?, to.hip_mut(&stream)?);
        fft.enqueue(&stream, Direction::Forward, from.slice(), to.slice_mut())?;
        Ok(stream.synchronize()?)
    };
    let mut ways: Vec<(&str, &Way<'_>)> = vec![("an OpenCL queue", &on_queue)];
    match fft.prepare(Direction::Forward) {
        Ok(()) => ways.push(("a HIP stream", &on_stream)),
        Err(why) => found.notes.push(not_on_stream(&why)),
    }
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
    let passes = plan.passes();
    let line = |name: &str, times: Vec<f64>| {
        let rates = per_second(plan.bytes_moved() as f64, &times);
        Line::of(format!("{len} x {batch}, {name}"), "GB/s", Better::Higher, rates)
    };
    // Each way in turns with the peers, and not with the other: an OpenCL queue costs a stream that follows a change of
    // contexts.
    for (number, (way, run)) in ways.iter().enumerate() {
        let mut ours = || run(&from, &mut to);
        let mut turns: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut ours];
        turns.extend(theirs.iter_mut().map(|turn| turn as _));
        let mut times = in_turns(SAMPLES, &mut turns)?.into_iter();
        drop(turns);
        let name = format!("{} on {way}", plan.way());
        found.lines.push(line(&name, times.next().unwrap_or_default()).against(
            limit / passes as f64,
            format!("a copy kernel on this memory for each of {passes} passes"),
        ));
        if number + 1 == ways.len() {
            let peers = peers.found.iter().zip(times);
            let lines =
                peers.map(|(peer, times)| line(&peer.name(), times).against(limit, "a copy kernel on this memory"));
            found.lines.extend(lines);
        }
    }
    let mut result = vec![C32::default(); len * batch];
    let mut other = vec![C32::default(); len * batch];
    for (number, (way, run)) in ways.iter().enumerate() {
        // A peer may use its input as scratch memory.
        from.upload(&numbers)?;
        to.upload(&other)?;
        run(&from, &mut to)?;
        match number {
            0 => to.download(&mut result)?,
            _ => {
                to.download(&mut other)?;
                same_result("fft", way, &result, &other)?;
            }
        }
    }
    other.fill(C32::default());
    for (turn, peer) in theirs.iter_mut().zip(&peers.found) {
        from.upload(&numbers)?;
        to.upload(&other)?;
        turn()?;
        to.download(&mut other)?;
        same_result("fft", &peer.name(), &result, &other)?;
    }
    drop(theirs);
    found.notes.extend(peers.missing);
    Ok(())
}

/// Transforms with options, on a queue and on a stream.
struct Cases<'a> {
    setup: &'a Setup,
    /// Of a copy kernel, in GB/s.
    limit: f64,
    found: &'a mut Figures,
}

impl Cases<'_> {
    fn measure_all(&mut self) -> Result<()> {
        const LEN: usize = 4096;
        const SHORT: usize = 3000;
        // A prime, and the largest one below the last size of SIZES.
        const PRIMES: [(usize, usize); 2] = [(1009, 1024), (1_048_573, 1)];
        let window: Vec<f32> = (0..SHORT).map(|i| (i as f32 / SHORT as f32).sqrt()).collect();
        let rows = |len| Plan::builder(len).batch(1024);
        let (forward, inverse) = (Direction::Forward, Direction::Inverse);
        let complex = |i: usize| C32::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0);
        let real = |i: usize| (i % 17) as f32 - 8.0;
        let padded = rows(LEN).input_len(SHORT).window(&window);
        self.measure::<C32, C32>("3000 in 4096 x 1024, windowed", &padded, forward, complex)?;
        self.measure::<f32, C32>(
            "4096 x 1024, real to complex",
            &rows(LEN).real_to_complex(),
            forward,
            real,
        )?;
        self.measure::<C32, f32>(
            "4096 x 1024, complex to real",
            &rows(LEN).complex_to_real(),
            inverse,
            complex,
        )?;
        for (len, batch) in PRIMES {
            let name = format!("{len} x {batch}");
            self.measure::<C32, C32>(&name, &Plan::builder(len).batch(batch), forward, complex)?;
        }
        Ok(())
    }

    fn measure<I: Sample, O: Sample>(
        &mut self,
        name: &str,
        builder: &Builder,
        direction: Direction,
        number: impl Fn(usize) -> I,
    ) -> Result<()> {
        let bridge = &self.setup.bridge;
        let (queue, stream) = (bridge.queue()?, bridge.stream()?);
        let plan = builder.build(bridge.cl_context(), bridge.programs())?;
        plan.prepare(direction)?;
        let mut from = bridge.alloc::<I>(plan.input().extent)?;
        let mut to = bridge.alloc::<O>(plan.output().extent)?;
        let numbers: Vec<I> = (0..from.len()).map(number).collect();
        from.upload(&numbers)?;
        let fft = bridge.stream_fft(&plan)?;
        let on_stream = match fft.prepare(direction) {
            Ok(()) => true,
            Err(why) => {
                self.found.notes.push(not_on_stream(&why));
                false
            }
        };
        let mut results = Vec::new();
        for (way, by_stream) in [("an OpenCL queue", false), ("a HIP stream", true)] {
            if by_stream && !on_stream {
                continue;
            }
            let mut run = || {
                if by_stream {
                    let (from, mut to) = (from.hip(&stream)?, to.hip_mut(&stream)?);
                    fft.enqueue(&stream, direction, from.slice(), to.slice_mut())?;
                    return Ok(stream.synchronize()?);
                }
                let (from, to) = (from.cl(&queue)?, to.cl_mut(&queue)?);
                // SAFETY: both hold the plan's data, and nothing else uses them.
                unsafe { plan.enqueue(&queue, direction, from.arg(), to.arg()) }?;
                Ok(queue.finish()?)
            };
            let times = in_turns(SAMPLES, &mut [&mut run])?.pop().unwrap_or_default();
            let rates = per_second(plan.bytes_moved() as f64, &times);
            let line = Line::of(
                format!("{name}, {} on {way}", plan.way()),
                "GB/s",
                Better::Higher,
                rates,
            );
            let share = plan.bytes_moved() as f64 / plan.traffic() as f64;
            self.found.lines.push(line.against(
                self.limit * share,
                format!(
                    "a copy kernel on this memory for the {:.1} times as many bytes of {} passes",
                    1.0 / share,
                    plan.passes()
                ),
            ));
            let mut result = vec![O::zeroed(); to.len()];
            to.download(&mut result)?;
            let floats = bytemuck::cast_slice::<O, f32>(&result).iter();
            results.push(floats.map(|&part| C32::new(part, 0.0)).collect::<Vec<_>>());
            to.upload(&vec![O::zeroed(); to.len()])?;
        }
        if let [queue, stream] = &results[..] {
            same_result("fft", "a HIP stream", queue, stream)?;
        }
        Ok(())
    }
}
