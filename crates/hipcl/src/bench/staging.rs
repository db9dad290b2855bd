//! A change of side by copying, against its own two copies, and beside a shared buffer's.

use interop::{Bridge, Category, Route};

use super::line::{Better, Line};
use super::{Figures, Setup, per_second, seconds};
use crate::Result;

const SIZES: [(&str, usize); 4] = [
    ("64 KiB", 64 << 10),
    ("4 MiB", 4 << 20),
    ("32 MiB", 32 << 20),
    ("128 MiB", 128 << 20),
];
const ON_A_CARD: (&str, usize) = ("1 GiB", 1 << 30);
const SAMPLES: usize = 20;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let staged = setup.on_route(Route::Staging)?;
    staged.meter().count_as(Category::Control, || compare(setup, &staged))
}

fn compare(setup: &Setup, staged: &Bridge) -> Result<Figures> {
    let (queue, stream) = (staged.queue()?, staged.stream()?);
    let mut found = Figures::default();
    let on_host = setup.bridge.report().platform.facts().is_model;
    let more = (!on_host).then_some(ON_A_CARD);
    for (size, bytes) in SIZES.into_iter().chain(more) {
        let mut buffer = staged.alloc::<u8>(bytes)?;
        let both_ways = seconds(SAMPLES, || {
            drop(buffer.cl_mut(&queue)?);
            drop(buffer.hip_mut(&stream)?);
            Ok(())
        })?;
        // what the two changes have to do at least: out of one API and into the other, twice
        let mut pinned = staged.hip_device().alloc_pinned::<u8>(bytes)?;
        let mut hip = staged.hip_device().alloc::<u8>(bytes)?;
        let mut opencl = clmgr::RegularBuffer::<u8>::new(staged.cl_context(), bytes)?;
        let copies = seconds(SAMPLES, || {
            opencl.read(&queue, pinned.host_mut()?)?;
            hip.copy_from_slice(&stream, pinned.host()?)?;
            hip.copy_to_slice(&stream, pinned.host_mut()?)?;
            Ok(opencl.write(&queue, pinned.host()?)?)
        })?;
        let payload = 2.0 * bytes as f64;
        let limit = Line::of("", "GB/s", Better::Higher, per_second(payload, &copies)).value;
        found.lines.push(
            Line::of(
                format!("staging, {size} each way"),
                "GB/s",
                Better::Higher,
                per_second(payload, &both_ways),
            )
            .against(limit, "its copies alone, through pinned memory"),
        );
        let staging_us = Line::of("", "us", Better::Lower, microseconds(&both_ways)).value;
        found
            .lines
            .push(shared(setup, size, bytes)?.against(staging_us, "the same by staging"));
    }
    Ok(found)
}

fn shared(setup: &Setup, size: &str, bytes: usize) -> Result<Line> {
    let bridge = &setup.bridge;
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let mut buffer = bridge.alloc::<u8>(bytes)?;
    let both_ways = seconds(SAMPLES, || {
        drop(buffer.cl_mut(&queue)?);
        drop(buffer.hip_mut(&stream)?);
        Ok(stream.synchronize()?)
    })?;
    let name = format!("{}, {size} each way", bridge.route());
    Ok(Line::of(name, "us", Better::Lower, microseconds(&both_ways)))
}

fn microseconds(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|time| time * 1e6).collect()
}
