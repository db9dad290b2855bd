//! Whether kernels of each API can access memory, and how fast.

use super::Memory;
use crate::bridge::probe::Probe;
use crate::core::Core;
use crate::diagnose::measure::{BRIEF, LEAST_BYTES, affordable_copy, rate_of};
use crate::diagnose::trial::Extent;
use crate::{Direction, Error, Result};

const SEED: u32 = 0x0A11_0C8D;
const BLOCK: u32 = 256;

/// Copies `from` to `to` by an OpenCL kernel, or a HIP kernel if `by_hip`: 10^9 bytes a second, read and written, if
/// figures are asked for. The API that allocated the memory fills it first and looks at the copy afterwards.
pub(crate) fn use_by(
    core: &Core,
    probe: &Probe,
    (from, to): (&Memory, &Memory),
    by_hip: bool,
    extent: Extent,
) -> Result<Option<f64>> {
    // Refused before anything is filled.
    if by_hip {
        from.hip_address(core)?;
    } else {
        from.cl_arg(core)?;
    }
    let owner: &dyn Api = if from.is_hip_call() {
        &Hip(core, probe)
    } else {
        &Cl(core, probe)
    };
    let user: &dyn Api = if by_hip { &Hip(core, probe) } else { &Cl(core, probe) };
    let most = from.bytes.min(to.bytes);
    let bytes = match extent {
        Extent::Proof => most.min(LEAST_BYTES),
        Extent::Figures => affordable_copy(BRIEF, most, |bytes| user.copy(from, to, bytes))?,
    };
    owner.fill(from, SEED, bytes)?;
    // Pages that were never written may all be one page of zeros.
    owner.fill(to, !SEED, bytes)?;
    let copy = || user.copy(from, to, bytes);
    let rate = match extent {
        Extent::Proof => copy().map(|()| None),
        Extent::Figures => rate_of(bytes, copy).map(Some),
    }?;
    let mismatches = owner.check(to, SEED, bytes)?;
    if mismatches == 0 {
        return Ok(rate);
    }
    let (writer, reader) = match (by_hip, from.is_hip_call()) {
        (true, false) => Direction::HipToOpenCl.ends(),
        (false, true) => Direction::OpenClToHip.ends(),
        (true, true) => ("HIP", "HIP"),
        (false, false) => ("OpenCL", "OpenCL"),
    };
    Err(Error::PatternMismatch {
        route: from.route(),
        writer,
        reader,
        mismatches,
        words: words(bytes),
    })
}

fn words(bytes: usize) -> usize {
    bytes / size_of::<u32>()
}

fn elements(bytes: usize) -> usize {
    bytes / size_of::<[f32; 4]>()
}

/// Kernels of one API on the first `bytes` of memory, waited for.
trait Api {
    fn fill(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<()>;
    fn copy(&self, from: &Memory, to: &Memory, bytes: usize) -> Result<()>;
    /// The number of words that are not as `fill` left them.
    fn check(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<u32>;
}

struct Cl<'a>(&'a Core, &'a Probe);

impl Api for Cl<'_> {
    fn fill(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<()> {
        let Self(core, probe) = self;
        let args = [memory.cl_arg(core)?, clmgr::Arg::scalar(&seed)];
        let range = clmgr::NdRange::d1(words(bytes));
        // SAFETY: probe_fill takes a buffer and a uint and writes one word per work-item.
        unsafe { probe.cl().fill.launch(&core.queue, range, &args) }?;
        Ok(core.queue.finish()?)
    }

    fn copy(&self, from: &Memory, to: &Memory, bytes: usize) -> Result<()> {
        let Self(core, probe) = self;
        let args = [from.cl_arg(core)?, to.cl_arg(core)?];
        let range = clmgr::NdRange::d1(elements(bytes));
        // SAFETY: probe_copy takes two buffers of as many float4 as there are work-items.
        unsafe { probe.cl().copy.launch(&core.queue, range, &args) }?;
        Ok(core.queue.finish()?)
    }

    fn check(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<u32> {
        let Self(core, probe) = self;
        let mut count = [0_u32];
        let mut counter = clmgr::RegularBuffer::<u32>::new(&core.context, 1)?;
        counter.write(&core.queue, &count)?;
        let args = [memory.cl_arg(core)?, clmgr::Arg::scalar(&seed), counter.arg()];
        let range = clmgr::NdRange::d1(words(bytes));
        // SAFETY: probe_check takes a buffer, a uint and a counter, and reads one word per work-item.
        unsafe { probe.cl().check.launch(&core.queue, range, &args) }?;
        counter.read(&core.queue, &mut count)?;
        Ok(count[0])
    }
}

struct Hip<'a>(&'a Core, &'a Probe);

impl Hip<'_> {
    /// The first bytes of the memory as elements of 16 bytes or less.
    fn slice<T>(&self, memory: &Memory, bytes: usize) -> Result<hip::DeviceSliceMut<'_, T>> {
        let Self(core, _) = self;
        let len = bytes / size_of::<T>();
        let address = memory.hip_address(core)?.cast();
        // SAFETY: the memory has as many bytes, aligned as any allocation is, and outlives the kernel, which its caller
        // waits for; nothing else uses it meanwhile.
        Ok(unsafe { hip::DeviceSliceMut::from_raw_parts(address, len, &core.stream) })
    }
}

impl Api for Hip<'_> {
    fn fill(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<()> {
        let Self(core, probe) = self;
        let (slice, count) = (self.slice::<u32>(memory, bytes)?, words(bytes) as u64);
        let config = hip::LaunchConfig::linear(words(bytes), BLOCK)?;
        let kernel = &probe.hip().fill;
        // SAFETY: probe_fill takes a pointer, a 64-bit count and a uint, and stays below the count.
        unsafe { kernel.launch(&core.stream, config, &[&slice, &count, &seed]) }?;
        Ok(core.stream.synchronize()?)
    }

    fn copy(&self, from: &Memory, to: &Memory, bytes: usize) -> Result<()> {
        let Self(core, probe) = self;
        let (source, target) = (self.slice::<[f32; 4]>(from, bytes)?, self.slice::<[f32; 4]>(to, bytes)?);
        let count = elements(bytes) as u64;
        let config = hip::LaunchConfig::linear(elements(bytes), BLOCK)?;
        let kernel = &probe.hip().copy;
        // SAFETY: probe_copy takes two pointers and a 64-bit count and stays below the count.
        unsafe { kernel.launch(&core.stream, config, &[&source, &target, &count]) }?;
        Ok(core.stream.synchronize()?)
    }

    fn check(&self, memory: &Memory, seed: u32, bytes: usize) -> Result<u32> {
        let Self(core, probe) = self;
        let mut count = [0_u32];
        let mut counter = core.hip_device.alloc_from(&core.stream, &count)?;
        {
            let (slice, len) = (self.slice::<u32>(memory, bytes)?, words(bytes) as u64);
            let config = hip::LaunchConfig::linear(words(bytes), BLOCK)?;
            let mismatches = counter.on_mut(&core.stream)?;
            let kernel = &probe.hip().check;
            // SAFETY: probe_check takes a pointer, a 64-bit count, a uint and a counter, and stays below the count.
            unsafe { kernel.launch(&core.stream, config, &[&slice, &len, &seed, &mismatches]) }?;
        }
        counter.copy_to_slice(&core.stream, &mut count)?;
        Ok(count[0])
    }
}
