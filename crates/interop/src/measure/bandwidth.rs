use super::median;
use crate::{Bridge, Error, Joint, Result, Shared};
use platform::Platform;
use std::borrow::BorrowMut;
use std::time::Instant;

/// Each of the two buffers: larger than a processor's caches.
const HOST_BYTES: usize = 256 << 20;
/// The same on a card, whose caches and bandwidth are larger.
const CARD_BYTES: usize = 1 << 30;
const REPEATS: usize = 7;
const BLOCK: u32 = 256;

/// Memory bandwidth, counting bytes read and bytes written, in 10^9 bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// An OpenCL kernel that copies `float4`s.
    pub opencl_gb_s: f64,
    /// The same as a HIP kernel.
    pub hip_gb_s: f64,
    /// The better of the two: what this memory can do.
    pub limit_gb_s: f64,
}

/// Copies 256 MiB (on a card 1 GiB) within the memory of the bridge's route, by a kernel of each API;
/// medians.
///
/// # Errors
/// If an allocation or a launch fails.
pub fn bandwidth(bridge: &Bridge) -> Result<Bandwidth> {
    over(bridge, whole_bytes(bridge.report().platform))
}

/// As [`bandwidth`], over a quarter of the memory: still more than a processor's caches, and quick
/// where the memory is behind a link.
///
/// # Errors
/// As [`bandwidth`].
pub fn bandwidth_briefly(bridge: &Bridge) -> Result<Bandwidth> {
    over(bridge, brief_bytes(bridge.report().platform))
}

/// The memory of a brief measurement.
pub(crate) fn brief_bytes(platform: Platform) -> usize {
    whole_bytes(platform) / 4
}

fn whole_bytes(platform: Platform) -> usize {
    match platform {
        Platform::Host => HOST_BYTES,
        _ => CARD_BYTES,
    }
}

fn over(bridge: &Bridge, bytes: usize) -> Result<Bandwidth> {
    let elements = bytes / size_of::<[f32; 4]>();
    let from = bridge.alloc::<[f32; 4]>(elements)?;
    let to = bridge.alloc::<[f32; 4]>(elements)?;
    copies(bridge, from, to)
}

/// As [`bandwidth`], from one buffer of another process to one of the same length, in this side's turn.
///
/// # Errors
/// If it is not this side's turn, the lengths differ or a launch fails.
pub fn joint_bandwidth(
    bridge: &Bridge,
    from: &mut Joint<[f32; 4]>,
    to: &mut Joint<[f32; 4]>,
) -> Result<Bandwidth> {
    copies(bridge, from.granted_mut()?, to.granted_mut()?)
}

fn copies(
    bridge: &Bridge,
    mut from: impl BorrowMut<Shared<[f32; 4]>>,
    mut to: impl BorrowMut<Shared<[f32; 4]>>,
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
    let bytes = elements * size_of::<[f32; 4]>();
    let (queue, stream) = (bridge.queue()?, bridge.stream()?);
    touch(bridge, from, &queue)?;

    let kernel = &bridge.probe().cl().copy;
    let opencl_gb_s = {
        let (from, to) = (from.cl(&queue)?, to.cl_mut(&queue)?);
        rate_of(bytes, || {
            // SAFETY: probe_copy takes two buffers of as many float4 as there are work-items.
            unsafe {
                kernel.launch(
                    &queue,
                    clmgr::NdRange::d1(elements),
                    &[from.arg(), to.arg()],
                )
            }?;
            Ok(queue.finish()?)
        })?
    };
    let kernel = &bridge.probe().hip().copy;
    let hip_gb_s = {
        let (from, mut to) = (from.hip(&stream)?, to.hip_mut(&stream)?);
        let config = hip::LaunchConfig::linear(elements, BLOCK)?;
        let (from, to, count) = (from.slice(), to.slice_mut(), elements as u64);
        rate_of(bytes, || {
            // SAFETY: probe_copy takes two pointers and a 64-bit count and stays below the count.
            unsafe { kernel.launch(&stream, config, &[&from, &to, &count]) }?;
            Ok(stream.synchronize()?)
        })?
    };
    Ok(Bandwidth {
        opencl_gb_s,
        hip_gb_s,
        limit_gb_s: opencl_gb_s.max(hip_gb_s),
    })
}

/// Gives every page a frame of its own: pages never written may all be one page of zeros.
fn touch(bridge: &Bridge, buffer: &mut Shared<[f32; 4]>, queue: &clmgr::Queue) -> Result<()> {
    let len = buffer.len();
    let guard = buffer.cl_mut(queue)?;
    let kernel = &bridge.probe().cl().fill;
    let args = [guard.arg(), clmgr::Arg::scalar(&1_u32)];
    // SAFETY: probe_fill writes one 32-bit word per work-item; four of them make an element.
    unsafe { kernel.launch(queue, clmgr::NdRange::d1(len * 4), &args) }?;
    Ok(queue.finish()?)
}

/// 10^9 bytes a second, read and written, of what copies so many bytes and waits: the middle of several, after one to warm up.
pub(crate) fn rate_of(bytes: usize, mut copy: impl FnMut() -> Result<()>) -> Result<f64> {
    copy()?;
    let mut rates = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let start = Instant::now();
        copy()?;
        rates.push(2.0 * bytes as f64 / start.elapsed().as_secs_f64() / 1e9);
    }
    Ok(median(&mut rates))
}
