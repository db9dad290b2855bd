use std::borrow::BorrowMut;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use platform::Platform;

use super::{median, pace};
use crate::{Bridge, Error, Joint, Result, Shared};

/// Each of the two buffers: larger than a processor's caches.
const HOST_BYTES: usize = 256 << 20;
/// The same on a card, whose caches and bandwidth are larger.
const CARD_BYTES: usize = 1 << 30;
/// The initial size on a slow device.
pub(crate) const LEAST_BYTES: usize = 128 << 10;
/// Time budget for the copies of one measurement. Over a PCIe link they need a third of it.
const WHOLE: Duration = Duration::from_secs(4);
/// The same over a quarter of the memory.
pub(crate) const BRIEF: Duration = Duration::from_millis(500);
const REPEATS: usize = 7;
const BLOCK: u32 = 256;
const ELEMENT: usize = size_of::<Float4>();

/// Four numbers, aligned as the `float4` of both APIs, which their copy kernels move at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Float4(pub [f32; 4]);

/// Memory bandwidth, counting bytes read and bytes written, in 10^9 bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// An OpenCL kernel that copies `float4`s.
    pub opencl_gb_s: f64,
    /// The same as a HIP kernel.
    pub hip_gb_s: f64,
    /// The better of the two: the limit of this memory.
    pub limit_gb_s: f64,
}

/// Copies 256 MiB (on a card 1 GiB; less where that would take seconds, or where OpenCL imports no more) within the memory of the bridge's route, by a
/// kernel of each API; medians.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn bandwidth(bridge: &Bridge) -> Result<Bandwidth> {
    over(bridge, whole_bytes(bridge.report().platform), WHOLE)
}

/// As [`bandwidth`], over a quarter of the memory: still more than a processor's caches, and quick
/// where the memory is behind a link.
///
/// # Errors
/// As [`bandwidth`].
pub fn bandwidth_briefly(bridge: &Bridge) -> Result<Bandwidth> {
    over(bridge, brief_bytes(bridge.report().platform), BRIEF)
}

/// The memory of a brief measurement.
pub(crate) fn brief_bytes(platform: Platform) -> usize {
    whole_bytes(platform) / 4
}

fn whole_bytes(platform: Platform) -> usize {
    let facts = platform.facts();
    match (facts.is_model, (facts.import_limit)()) {
        (true, _) => HOST_BYTES,
        (false, Some(limit)) if limit < CARD_BYTES => CARD_BYTES / 4,
        (false, _) => CARD_BYTES,
    }
}

fn over(bridge: &Bridge, bytes: usize, time: Duration) -> Result<Bandwidth> {
    let elements = bytes / ELEMENT;
    let from = bridge.alloc::<Float4>(elements)?;
    let to = bridge.alloc::<Float4>(elements)?;
    copies(bridge, time, from, to)
}

/// As [`bandwidth`], from one buffer of another process to one of the same length, in this side's turn.
///
/// # Errors
/// If it is not this side's turn, the lengths differ or a launch fails.
pub fn joint_bandwidth(bridge: &Bridge, from: &mut Joint<Float4>, to: &mut Joint<Float4>) -> Result<Bandwidth> {
    copies(bridge, WHOLE, from.granted_mut()?, to.granted_mut()?)
}

fn copies(
    bridge: &Bridge,
    time: Duration,
    mut from: impl BorrowMut<Shared<Float4>>,
    mut to: impl BorrowMut<Shared<Float4>>,
) -> Result<Bandwidth> {
    let (from, to) = (from.borrow_mut(), to.borrow_mut());
    let elements = from.len();
    if to.len() != elements {
        return Err(Error::LengthMismatch {
            what: "a copy between two buffers",
            given: elements,
            expected: to.len(),
        });
    }
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    let (probe_cl, probe_hip) = (bridge.probe().cl(), bridge.probe().hip());

    let (bytes, opencl_gb_s) = {
        let (from, to) = (from.cl_mut(&queue)?, to.cl_mut(&queue)?);
        let copy = |bytes: usize| {
            let range = clmgr::NdRange::d1(bytes / ELEMENT);
            // SAFETY: probe_copy takes two buffers of at least as many float4 as there are work-items.
            unsafe { probe_cl.copy.launch(&queue, range, &[from.arg(), to.arg()]) }?;
            Ok(queue.finish()?)
        };
        let bytes = affordable_copy(time, elements * ELEMENT, copy)?;
        // Gives every page a frame of its own: pages never written may all be one page of zeros.
        let range = clmgr::NdRange::d1(bytes / size_of::<u32>());
        let args = [from.arg(), clmgr::Arg::scalar(&1_u32)];
        // SAFETY: probe_fill writes one 32-bit word per work-item.
        unsafe { probe_cl.fill.launch(&queue, range, &args) }?;
        queue.finish()?;
        (bytes, rate_of(bytes, || copy(bytes))?)
    };
    let hip_gb_s = {
        let (from, mut to) = (from.hip(&stream)?, to.hip_mut(&stream)?);
        let config = hip::LaunchConfig::linear(bytes / ELEMENT, BLOCK)?;
        let (from, to, count) = (from.slice(), to.slice_mut(), (bytes / ELEMENT) as u64);
        rate_of(bytes, || {
            // SAFETY: probe_copy takes two pointers and a 64-bit count and stays below the count.
            unsafe { probe_hip.copy.launch(&stream, config, &[&from, &to, &count]) }?;
            Ok(stream.synchronize()?)
        })?
    };
    Ok(Bandwidth {
        opencl_gb_s,
        hip_gb_s,
        limit_gb_s: opencl_gb_s.max(hip_gb_s),
    })
}

/// As many of `most` bytes as `copy`, which copies that many and waits, can copy often enough within `time`. Whole
/// elements.
pub(crate) fn affordable_copy(time: Duration, most: usize, copy: impl FnMut(usize) -> Result<()>) -> Result<usize> {
    // By both APIs.
    pace::affordable(time, LEAST_BYTES, most, 2 * (REPEATS + 1), copy)
}

/// 10^9 bytes a second, read and written, of a `copy` that copies `bytes` bytes and waits: the median of several, after
/// one to warm up.
pub(crate) fn rate_of(bytes: usize, mut copy: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut rates = Vec::with_capacity(REPEATS);
    for counts in pace::samples(1, REPEATS) {
        let start = Instant::now();
        copy()?;
        if counts {
            rates.push(2.0 * bytes as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    Ok(median(&mut rates))
}
