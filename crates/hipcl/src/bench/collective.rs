//! `hipcl bench collective`: all-reduce of three sizes, beside the library's own calls on the same communicators.
//!
//! One process has a rank on each of its GPUs, and queues their calls as a group. Of several processes each has one; all
//! of them measure, and the first one prints.

use std::ffi::c_void;
use std::time::Instant;

use hip::{Device, DeviceBuffer, Stream};
use interop::rccl::{Communicator, Library, ReduceOp};
use rccl_sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::{Error, Result};

/// One rank of this process.
struct Rank<'a> {
    communicator: &'a Communicator,
    stream: Stream,
    memory: DeviceBuffer<f32>,
    /// The memory's address, for raw calls.
    address: *mut c_void,
}

/// What is measured of one size.
struct Size {
    elements: usize,
    name: &'static str,
    /// Timed together.
    calls: usize,
    samples: usize,
}

/// Of each size: elements on a card, on the software device, and what it is called.
const SIZES: [(usize, usize, &str); 3] = [
    (1 << 10, 1 << 10, "4 KiB"),
    (1 << 18, 1 << 18, "1 MiB"),
    (1 << 26, 1 << 20, "256 MiB"),
];
/// On the software device the largest is this.
const LARGEST_OF_MODEL: &str = "4 MiB";

/// Calls that are timed together, for each size.
const CALLS: [usize; 3] = [64, 32, 4];
/// Samples of each way, in turns, on a card and on the software device.
const SAMPLES: [usize; 2] = [25, 5];

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let Some(joined) = &setup.ranks else {
        return Ok(Figures::default());
    };
    let library = setup.bridge.collectives()?;
    let own;
    let (communicators, ranks): (&[Communicator], usize) = if joined.count() > 1 {
        (std::slice::from_ref(joined.communicator()), joined.count())
    } else {
        let runtime = setup.bridge.hip_device().runtime();
        let count = runtime.device_count()?;
        let devices = (0..count).map(|ordinal| Ok(runtime.device(ordinal)?));
        let devices = devices.collect::<Result<Vec<Device>>>()?;
        own = Communicator::all(&library, &devices)?;
        (&own, count)
    };
    let is_model = setup.bridge.report().platform.facts().is_model;
    let mut found = Figures::default();
    for ((on_card, on_model, name), calls) in SIZES.into_iter().zip(CALLS) {
        let (elements, name) = match is_model {
            true if on_model < on_card => (on_model, LARGEST_OF_MODEL),
            _ => (on_card, name),
        };
        let size = Size {
            elements,
            name,
            calls,
            samples: SAMPLES[usize::from(is_model)],
        };
        one_size(&library, communicators, ranks, &size, &mut found)?;
    }
    found.notes.push(format!(
        "{ranks} rank{} in {}; bandwidth is that of the bus, 2 (n - 1) / n times the bytes over the time; every mean was checked",
        if ranks == 1 { "" } else { "s" },
        if joined.count() > 1 { "a process each" } else { "one process" },
    ));
    found.notes.push(format!("RCCL's API, version {}", library.version()?));
    Ok(found)
}

/// All-reduce by our calls and by the library's, in turns.
fn one_size(
    library: &Library,
    communicators: &[Communicator],
    ranks: usize,
    size: &Size,
    found: &mut Figures,
) -> Result<()> {
    let &Size {
        elements,
        name,
        calls,
        samples,
    } = size;
    let mut here = communicators
        .iter()
        .map(|communicator| {
            let stream = communicator.device().stream()?;
            // The first call makes the mean of these of all, which later ones keep.
            let own = vec![1.0 + communicator.rank() as f32; elements];
            let mut memory = communicator.device().alloc_from(&stream, &own)?;
            let address = memory.on_mut(&stream)?.as_mut_ptr().cast();
            Ok(Rank {
                communicator,
                stream,
                memory,
                address,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let (mut ours, mut raw, mut queued, mut raw_queued) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for sample in 0..=samples {
        let (total, queue) = timed(&mut here, calls, |here| by_us(library, here))?;
        let (raw_total, raw_queue) = timed(&mut here, calls, |here| by_library(library, here))?;
        // the first warms up
        if sample > 0 {
            ours.push(total);
            raw.push(raw_total);
            queued.push(queue);
            raw_queued.push(raw_queue);
        }
    }
    let mean = (ranks as f32 + 1.0) / 2.0;
    for rank in &here {
        let mut means = vec![0.0_f32; elements];
        rank.memory.copy_to_slice(&rank.stream, &mut means)?;
        if let Some(wrong) = means
            .iter()
            .find(|found| found.is_nan() || (**found - mean).abs() > 1e-4 * mean)
        {
            return Err(Error::input(format!(
                "all-reduce of {name}: {wrong} is not the mean of 1 to {ranks}; run `hipcl doctor`"
            )));
        }
    }
    let bytes = (elements * size_of::<f32>()) as f64 * 2.0 * (ranks as f64 - 1.0) / ranks as f64;
    let rate = |times: &[f64]| times.iter().map(|time| bytes / time / 1e9).collect::<Vec<_>>();
    let us = |times: &[f64]| times.iter().map(|time| time * 1e6).collect::<Vec<_>>();
    let line =
        |what: &str, unit, better, samples| Line::of(format!("all-reduce of {name}, {what}"), unit, better, samples);
    let limit_is = "the library's raw calls, in turns";
    if ranks > 1 {
        let limit = line("raw", "GB/s", Better::Higher, rate(&raw)).value;
        let ours = line("bandwidth", "GB/s", Better::Higher, rate(&ours));
        found.lines.push(ours.against(limit, limit_is));
    }
    let limit = line("raw", "µs", Better::Lower, us(&raw)).value;
    found
        .lines
        .push(line("time", "µs", Better::Lower, us(&ours)).against(limit, limit_is));
    let limit = line("raw", "µs", Better::Lower, us(&raw_queued)).value;
    let queued = line("until it is queued", "µs", Better::Lower, us(&queued));
    if elements == SIZES[0].0 {
        let added = (queued.value - limit) * 1e3 / here.len() as f64;
        let note = format!("{added:.0} ns added to a call of {name} by the checks and the order of its memory");
        found.notes.push(note);
    }
    found.lines.push(queued.against(limit, limit_is));
    Ok(())
}

/// Seconds of each of `calls` calls for each of the ranks here: until all have ended, and until they were queued.
fn timed<'a>(
    here: &mut [Rank<'a>],
    calls: usize,
    mut call: impl FnMut(&mut [Rank<'a>]) -> Result<()>,
) -> Result<(f64, f64)> {
    let start = Instant::now();
    for _ in 0..calls {
        call(here)?;
    }
    let queued = start.elapsed();
    for rank in here.iter() {
        rank.communicator.wait(&rank.stream)?;
    }
    let per_call = |time: std::time::Duration| time.as_secs_f64() / calls as f64;
    Ok((per_call(start.elapsed()), per_call(queued)))
}

fn by_us(library: &Library, here: &mut [Rank<'_>]) -> Result<()> {
    if let [one] = here {
        let (communicator, stream) = (one.communicator, &one.stream);
        return Ok(communicator.all_reduce_in_place(&mut one.memory, ReduceOp::Average, stream)?);
    }
    Ok(library.group(|group| {
        here.iter_mut().try_for_each(|rank| {
            group.all_reduce_in_place(rank.communicator, &mut rank.memory, ReduceOp::Average, &rank.stream)
        })
    })?)
}

/// The same calls as a program in C would make.
fn by_library(library: &Library, here: &[Rank<'_>]) -> Result<()> {
    let api = library.api();
    let (Some(start), Some(end), Some(all_reduce)) = (api.ncclGroupStart, api.ncclGroupEnd, api.ncclAllReduce) else {
        return Err(Error::input(
            "the library of collectives lacks ncclGroupStart, ncclGroupEnd or ncclAllReduce",
        ));
    };
    let check = |code: ncclResult_t| match code {
        ncclResult_t::ncclSuccess => Ok(()),
        code => Err(Error::input(format!(
            "a raw call of the library failed with {}",
            code.0
        ))),
    };
    let is_group = here.len() > 1;
    if is_group {
        // SAFETY: no conditions; the calls below and the end follow.
        check(unsafe { start() })?;
    }
    for rank in here.iter() {
        // SAFETY: the memory holds as many numbers, of the communicator's device, and is used on this stream only; both
        // outlive the work, which is waited for.
        let code = unsafe {
            all_reduce(
                rank.address,
                rank.address,
                rank.memory.len(),
                ncclDataType_t::ncclFloat32,
                ncclRedOp_t::ncclAvg,
                rank.communicator.raw(),
                rank.stream.raw(),
            )
        };
        check(code)?;
    }
    if is_group {
        // SAFETY: as above.
        check(unsafe { end() })?;
    }
    Ok(())
}
