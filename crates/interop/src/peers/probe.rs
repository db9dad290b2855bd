use std::time::Instant;

use hip::{DeviceBuffer, LaunchConfig};

use super::{PeerPath, no_peer};
use crate::{Bridge, Result};

/// 256 KiB: more than a page, and quick to check.
const WORDS: usize = 1 << 16;
const BLOCK: u32 = 256;
const SEED: u32 = 0x0D15_7A17;
const RUNS: usize = 5;

/// Enables the access and has a kernel of `to` read what one of `from` wrote, if it may; then has HIP copy it.
pub(super) fn prove(from: &Bridge, to: &Bridge) -> Result<PeerPath> {
    check_streams_run(from, to)?;
    let _scope = from.meter().scope(crate::Category::Control);
    let (here, there) = (from.main_stream(), to.main_stream());
    let mut source = from.hip_device().alloc::<u32>(WORDS)?;
    fill(from, &mut source)?;
    let path = if to.hip_device().can_access(from.hip_device())? {
        to.hip_device().enable_access(from.hip_device())?;
        let wrong = check(to, &source.on_peer(there)?)?;
        refuse(from, to, wrong, "read by a kernel of the second device")?;
        PeerPath::Direct
    } else {
        PeerPath::Staged
    };
    let mut copied = to.hip_device().alloc_zeroed::<u32>(WORDS)?;
    copied.copy_from_peer(there, &source)?;
    let wrong = check(to, &copied.on(there)?)?;
    refuse(from, to, wrong, "copied by hipMemcpyPeerAsync")?;
    here.synchronize()?;
    Ok(path)
}

/// Throughput of a HIP copy, in 10^9 bytes a second.
pub(super) fn speed(from: &Bridge, to: &Bridge) -> Result<f64> {
    check_streams_run(from, to)?;
    let _scope = from.meter().scope(crate::Category::Control);
    let bytes = match from.report().platform.facts().is_model {
        true => 16 << 20,
        false => 256 << 20,
    };
    let stream = to.main_stream();
    let mut source = from.hip_device().alloc::<u32>(bytes / 4)?;
    // Unwritten pages may all be one.
    fill(from, &mut source)?;
    let mut copied = to.hip_device().alloc::<u32>(bytes / 4)?;
    let mut rates = Vec::with_capacity(RUNS);
    for run in 0..=RUNS {
        let start = Instant::now();
        copied.copy_from_peer(stream, &source)?;
        stream.synchronize()?;
        if run > 0 {
            rates.push(bytes as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates[RUNS / 2])
}

fn check_streams_run(from: &Bridge, to: &Bridge) -> Result<()> {
    from.core().check_stream_runs()?;
    to.core().check_stream_runs()
}

fn fill(bridge: &Bridge, words: &mut DeviceBuffer<u32>) -> Result<()> {
    let stream = bridge.main_stream();
    let len = words.len();
    let slice = words.on_mut(stream)?;
    let config = LaunchConfig::linear(len, BLOCK)?;
    let kernel = &bridge.probe().hip().fill;
    // SAFETY: probe_fill takes a pointer, a 64-bit count and a uint, and stays below the count.
    unsafe { kernel.launch(stream, config, &[&slice, &(len as u64), &SEED]) }?;
    Ok(())
}

/// How many words a kernel of the bridge's device finds wrong.
fn check(bridge: &Bridge, words: &hip::DeviceSlice<'_, u32>) -> Result<u32> {
    let stream = bridge.main_stream();
    let mut count = [0_u32];
    let mut counter = bridge.hip_device().alloc_from(stream, &count)?;
    let config = LaunchConfig::linear(WORDS, BLOCK)?;
    let kernel = &bridge.probe().hip().check;
    {
        let wrong = counter.on_mut(stream)?;
        // SAFETY: probe_check takes a pointer, a 64-bit count, a uint and a counter, and stays below the count.
        unsafe { kernel.launch(stream, config, &[words, &(WORDS as u64), &SEED, &wrong]) }?;
    }
    counter.copy_to_slice(stream, &mut count)?;
    Ok(count[0])
}

fn refuse(from: &Bridge, to: &Bridge, wrong: u32, how: &str) -> Result<()> {
    if wrong == 0 {
        return Ok(());
    }
    let reason = format!(
        "{wrong} of {WORDS} words were wrong when {how}; check the peer-to-peer settings of the system (IOMMU, PCIe ACS)"
    );
    Err(no_peer(from, to, reason))
}
