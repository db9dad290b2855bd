//! `hipcl bench peers`: several GPUs at work on one stream of blocks, and copies between them.
//!
//! Each GPU has its own bridge, and takes the next block when it has room for one. First the blocks come from the host,
//! so that the GPUs share the links to it; then they are on the devices already, so only the drivers and the processors
//! that feed them are shared.

use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use hip::Stream;
use interop::{Bridge, Bridges, Options, Peer, Route};
use parking_lot::Mutex;

use super::line::{Better, Line};
use super::stages::{BYTES, Source, Stages};
use super::{Figures, Setup, per_second, seconds};
use crate::{Error, Result};

const SLOTS: usize = 8;
const RUNS: usize = 5;
const COPIES: usize = 20;
const ON_HOST: Size = Size {
    blocks: 16,
    words: 4 << 20,
};
const ON_A_CARD: Size = Size {
    blocks: 400,
    words: 64 << 20,
};

/// How much is moved.
#[derive(Clone, Copy)]
struct Size {
    /// Through the stages, by all GPUs together.
    blocks: usize,
    /// In a copy from GPU to GPU.
    words: usize,
}

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let route = setup.options.route;
    let options = Options {
        route,
        ..Options::default()
    };
    let Bridges { bridges, refused } = Bridge::open_all(&setup.selection, &options)?;
    let mut found = Figures::default();
    for (ordinal, error) in &refused {
        let note = format!("HIP device {ordinal} is not used: {error}");
        found.notes.push(note);
    }
    if bridges.len() < 2 {
        return Err(Error::input(format!(
            "`bench peers` needs two GPUs, but a bridge opens to {} here{}; on the host platform, set HIP_HOST_DEVICES=2",
            bridges.len(),
            found.notes.iter().map(|note| format!("; {note}")).collect::<String>()
        )));
    }
    let size = match setup.bridge.report().platform.facts().is_model {
        true => ON_HOST,
        false => ON_A_CARD,
    };
    let stages = bridges.iter().map(Stages::new);
    let stages = stages.collect::<Result<Vec<_>>>()?;
    scaling(&stages, Source::Host, size.blocks, &mut found)?;
    scaling(&stages, Source::Device, size.blocks, &mut found)?;
    drop(stages);
    copies(&bridges, size.words, &mut found)?;
    found.notes.push(format!(
        "a block is {} MiB; every block was checked on its device, and every copy word by word",
        BYTES >> 20
    ));
    Ok(found)
}

/// Each GPU alone and all of them together, in turns.
fn scaling(stages: &[Stages], source: Source, blocks: usize, found: &mut Figures) -> Result<()> {
    let (origin, limit_is) = match source {
        Source::Host => ("from the host", "upload from pinned memory alone"),
        Source::Device => ("on the device", "its kernels alone, no hand-off"),
    };
    let limits = stages.iter().map(|stages| match source {
        Source::Host => Ok(stages.upload_limit()? * 1e9 / BYTES as f64),
        Source::Device => Ok(1.0 / stages.kernels_alone()?),
    });
    let limits = limits.collect::<Result<Vec<_>>>()?;
    let mut alone = vec![Vec::new(); stages.len()];
    let (mut together, mut ratios) = (Vec::new(), Vec::new());
    // the first run warms up
    for run in 0..=RUNS {
        let mut each = Vec::with_capacity(stages.len());
        for one in stages.chunks(1) {
            each.push(rate(one, source, blocks)?);
        }
        let all = rate(stages, source, blocks)?;
        if run == 0 {
            continue;
        }
        ratios.push(all * stages.len() as f64 / each.iter().sum::<f64>());
        together.push(all);
        for (rates, rate) in alone.iter_mut().zip(each) {
            rates.push(rate);
        }
    }
    let rates = |name, samples| Line::of(name, "blocks/s", Better::Higher, samples);
    let mut sum = 0.0;
    for (index, (samples, limit)) in alone.into_iter().zip(limits).enumerate() {
        let line = rates(format!("{origin}, GPU {index} alone"), samples);
        sum += line.value;
        found.lines.push(line.against(limit, limit_is));
    }
    let count = stages.len();
    found
        .lines
        .push(rates(format!("{origin}, {count} GPUs"), together).against(sum, "the sum of each alone"));
    found.lines.push(
        Line::of(
            format!("{origin}, {count} GPUs over one"),
            "times",
            Better::Higher,
            ratios,
        )
        .against(count as f64, "no GPU slows another"),
    );
    Ok(())
}

/// Blocks a second, each by the GPU that has room for it first.
fn rate(stages: &[Stages], source: Source, blocks: usize) -> Result<f64> {
    let places = stages
        .iter()
        .map(|stages| stages.places(SLOTS, source))
        .collect::<Result<Vec<_>>>()?;
    let numbers = &Mutex::new(0..blocks);
    let start = &Barrier::new(stages.len());
    let runs: Result<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = stages
            .iter()
            .zip(places)
            .map(|(stages, places)| {
                scope.spawn(move || {
                    let mut next = std::iter::from_fn(|| numbers.lock().next());
                    start.wait();
                    let begin = Instant::now();
                    Ok((begin, stages.run(places, source, &mut next)?))
                })
            })
            .collect();
        let join = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(run) => run,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    let runs = runs?;
    let right: u64 = runs.iter().map(|(_, run)| run.right).sum();
    if right != blocks as u64 {
        return Err(Error::input(format!(
            "only {right} of the {blocks} blocks of the measurement were correct; run `hipcl doctor`"
        )));
    }
    let begin = runs.iter().map(|(begin, _)| *begin).min();
    let end = runs.iter().map(|(begin, run)| *begin + run.elapsed).max();
    let elapsed = end.zip(begin).map(|(end, begin)| end - begin);
    Ok(blocks as f64 / elapsed.unwrap_or_default().as_secs_f64())
}

/// From the first GPU to each of the others and back.
fn copies(bridges: &[Bridge], words: usize, found: &mut Figures) -> Result<()> {
    let [first, others @ ..] = bridges else {
        return Ok(());
    };
    let pairs = others.iter().flat_map(|other| [(first, other), (other, first)]);
    let mut seed = 0;
    for (from, to) in pairs {
        let peer = match from.peer(to) {
            Ok(peer) => peer,
            Err(error) => {
                found.notes.push(error.to_string());
                continue;
            }
        };
        found.notes.push(peer.report().to_string());
        let stream = to.stream()?;
        // What a user has without asking, and what HIP's own copies take.
        let mut routes = vec![from.route()];
        let hips = Route::HipPointer;
        if hips != from.route() && from.permitted().contains(&hips) {
            routes.push(hips);
        }
        for route in routes {
            // What the last copy left must not pass for this one's.
            seed += 2;
            found.lines.push(copy(&peer, route, &stream, words, seed)?);
        }
    }
    Ok(())
}

fn copy(peer: &Peer, route: Route, stream: &Stream, words: usize, seed: u32) -> Result<Line> {
    let word = |place: usize| (place as u32).wrapping_add(seed).wrapping_mul(0x9E37_79B1);
    let pattern: Vec<u32> = (0..words).map(word).collect();
    let mut source = peer.from().alloc_on::<u32>(route, words)?;
    let mut destination = peer.to().alloc_on::<u32>(route, words)?;
    source.upload(&pattern)?;
    let times = seconds(COPIES, || {
        peer.copy(&source, &mut destination, stream)?;
        Ok(stream.synchronize()?)
    })?;
    let mut arrived = vec![0; words];
    destination.download(&mut arrived)?;
    let wrong = arrived.iter().zip(&pattern).filter(|(a, b)| a != b).count();
    let report = peer.report();
    let name = format!("copy, GPU {} to {}, {route}", report.from, report.to);
    if wrong > 0 {
        return Err(Error::input(format!(
            "{name}: {wrong} of {words} words were wrong; run `hipcl doctor`"
        )));
    }
    let bytes = (words * size_of::<u32>()) as f64;
    Ok(Line::of(name, "GB/s", Better::Higher, per_second(bytes, &times))
        .against(report.gb_s, "HIP's copy of its own memory"))
}
