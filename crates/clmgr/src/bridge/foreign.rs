//! Copies by a kernel that takes a buffer of another context.
//!
//! OpenCL forbids it, and drivers differ: Intel's and NVIDIA's refuse such an argument, PoCL accepts it and works as
//! hoped. So it is tried: first between two contexts made for the purpose, since a GPU that faults takes its context
//! along, then between those of the bridge. Where a fault would take the process along it is tried only on request:
//! AMD's runtime ends the process at a memory fault of the card (ROCR-Runtime:
//! runtime/hsa-runtime/core/runtime/runtime.cpp, `VMFaultHandler`).

use bytemuck::Pod;

use super::copy::BridgeCopy;
use crate::access::BufferAccess;
use crate::api::slot;
use crate::buffer::{Object, RegularBuffer};
use crate::context::Context;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result, check};
use crate::handle::Handle;
use crate::kernel::{Arg, Kernel, NdRange};
use crate::program::Program;
use crate::queue::Queue;

const SOURCE: &str = include_str!("../../kernels/bridge.cl");
/// The bytes that the kernels `copy_16`, `copy_4` and `copy_1` move at a time.
const UNITS: [usize; 3] = [16, 4, 1];
/// In elements of four bytes; odd, so two kernels take part.
const PATTERN: usize = 16_385;

/// The copy kernels in the target's context.
pub(super) struct Foreign {
    /// In the order of [`UNITS`].
    kernels: [Kernel; UNITS.len()],
}

/// A reference to a source's memory.
pub(super) struct SourceRef {
    raw: Handle,
    context: Context,
}

impl Foreign {
    /// The kernels, if a pattern crosses from the context of `from` to that of `to`, else why not. `anywhere`: also
    /// where the driver is not known to survive the trial.
    pub fn open(from: &Queue, to: &Queue, anywhere: bool) -> std::result::Result<Self, String> {
        let device = to.context().device();
        if from.context().device() != device || !device.shares_library(from.context().device()) {
            return Err("the contexts belong to different devices".to_owned());
        }
        device.takes_foreign_buffers(anywhere, try_elsewhere)?;
        let kernels = Self::build(to.context()).map_err(|error| error.to_string())?;
        // On queues of their own: nothing waits for what the caller's are busy with.
        let queues = || Ok((from.context().queue()?, to.context().queue()?));
        verdict(queues().and_then(|(from, to)| kernels.carries_patterns(&from, &to)))?;
        Ok(kernels)
    }

    fn build(context: &Context) -> Result<Self> {
        let program = Program::build(context, SOURCE, "")?;
        Ok(Self {
            kernels: [
                program.kernel("copy_16")?,
                program.kernel("copy_4")?,
                program.kernel("copy_1")?,
            ],
        })
    }

    /// Enqueues the copy on `to`, after what is enqueued on `from`, whose later commands it holds up.
    /// The ranges lie in their buffers.
    pub fn copy<T: Pod>(
        &self,
        (from, source, source_at): (&Queue, &Object<T>, usize),
        (to, target, target_at): (&Queue, &mut Object<T>, usize),
        count: usize,
    ) -> Result<BridgeCopy> {
        allow(source.access(), source.access().device.reads(), "reading")?;
        allow(target.access(), target.access().device.writes(), "writing")?;
        to.wait_for_queue(from)?;
        // From here on an early return waits for what is enqueued.
        let mut copy = BridgeCopy::across(SourceRef::new(source)?);
        for part in parts(
            [source_at, target_at].map(|at| at * size_of::<T>()),
            count * size_of::<T>(),
        ) {
            let args = [
                Arg::Mem(source.raw()),
                Arg::scalar(&part.at[0]),
                Arg::Mem(target.raw()),
                Arg::scalar(&part.at[1]),
            ];
            // SAFETY: both ranges lie in their buffers, and the target is borrowed exclusively. The
            // source is of another context, where a pattern has shown that the driver takes it, or
            // is about to; `copy` holds it until the kernel has ended.
            let event = unsafe { self.kernels[part.kernel].launch_across(to, NdRange::d1(part.count), &args) }?;
            target.note_use(to);
            copy.push(event);
        }
        let end = to.record()?;
        copy.push(end.clone());
        // A wait for the source's own queue then includes the copy.
        from.wait_for_any(&end)?;
        source.note_use(from);
        to.flush()?;
        Ok(copy)
    }

    /// Whether patterns arrive, the second one too: the first could be a copy that the driver made
    /// of the source's memory and would keep.
    fn carries_patterns(&self, from: &Queue, to: &Queue) -> Result<bool> {
        let mut source = RegularBuffer::<u32>::new(from.context(), PATTERN + 4)?;
        let mut target = RegularBuffer::<u32>::new(to.context(), PATTERN + 4)?;
        target.fill(to, 0, PATTERN + 4, u32::MAX)?.wait()?;
        for seed in [0x9E37_79B9u32, 0x85EB_CA6B] {
            let pattern: Vec<u32> = (0..PATTERN as u32).map(|n| (n ^ seed).wrapping_mul(seed)).collect();
            source.write_at(from, 4, &pattern)?;
            self.copy((from, source.object(), 4), (to, target.object_mut(), 4), PATTERN)?
                .wait()?;
            let mut got = vec![0; PATTERN + 4];
            target.read(to, &mut got)?;
            if got[..4] != [u32::MAX; 4] || got[4..] != pattern {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A range that one kernel copies, in the kernel's units.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    /// Its place in [`UNITS`].
    kernel: usize,
    /// The start in the source and in the target.
    at: [u64; 2],
    count: usize,
}

/// A copy of `bytes` bytes between these offsets: each kernel in turn, where the offsets are multiples of its unit,
/// takes what the previous ones left.
fn parts(mut at: [usize; 2], mut bytes: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    for (kernel, unit) in UNITS.into_iter().enumerate() {
        let count = bytes / unit;
        if count == 0 || at.iter().any(|at| !at.is_multiple_of(unit)) {
            continue;
        }
        parts.push(Part {
            kernel,
            at: at.map(|at| (at / unit) as u64),
            count,
        });
        at = at.map(|at| at + count * unit);
        bytes -= count * unit;
    }
    parts
}

fn allow(access: BufferAccess, allowed: bool, what: &str) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::Access {
        what: format!("{what} it by a bridge's kernel, which `BufferBridge::staged` does not need,"),
        access,
    })
}

/// The trial in its own contexts.
fn try_elsewhere(device: &Device) -> Result<bool> {
    let (there, here) = (Context::new(device)?, Context::new(device)?);
    let (from, to) = (there.queue()?, here.queue()?);
    Foreign::build(&here)?.carries_patterns(&from, &to)
}

/// Whether another trial would end like this one: what OpenCL calls invalid stays so, a lack of memory need not.
pub(super) fn is_lasting(carried: &Result<bool>) -> bool {
    match carried {
        Ok(_) => true,
        Err(Error::Call { code, .. }) => {
            (opencl_sys::CL_MAX_SIZE_RESTRICTION_EXCEEDED..=opencl_sys::CL_INVALID_VALUE).contains(code)
        }
        Err(_) => false,
    }
}

fn verdict(carried: Result<bool>) -> std::result::Result<(), String> {
    match carried {
        Ok(true) => Ok(()),
        Ok(false) => Err("a pattern did not arrive in the other context".to_owned()),
        Err(error) => Err(format!("the driver refuses the other context's buffer: {error}")),
    }
}

impl Device {
    /// Whether its driver is known to refuse a kernel's argument of another context, or to take it, and do no harm: on
    /// a processor any address of the process is as good as another, and NVIDIA's (driver 580) refuses.
    fn bears_foreign_buffers(&self) -> bool {
        self.kind() == DeviceKind::Cpu || self.platform_name() == "NVIDIA CUDA"
    }

    /// Whether a kernel may take a buffer of another context of this device, found out once by
    /// `trial`. A trial that failed for want of memory or the like is made again.
    fn takes_foreign_buffers(
        &self,
        anywhere: bool,
        trial: impl FnOnce(&Self) -> Result<bool>,
    ) -> std::result::Result<(), String> {
        if let Some(known) = &*self.foreign_buffers().lock() {
            return known.clone();
        }
        if !anywhere && !self.bears_foreign_buffers() {
            return Err("it is not known whether its driver accepts a buffer of another context, and a fault would end the process; use `BufferBridge::with_trial` to try it".to_owned());
        }
        let carried = trial(self);
        let lasting = is_lasting(&carried);
        let verdict = verdict(carried);
        if lasting {
            *self.foreign_buffers().lock() = Some(verdict.clone());
        }
        verdict
    }
}

impl SourceRef {
    fn new<T>(source: &Object<T>) -> Result<Self> {
        let context = source.context().clone();
        let retain = slot!(context.api(), clRetainMemObject)?;
        // SAFETY: the buffer is alive.
        check(unsafe { retain(source.raw()) }, || "clRetainMemObject".to_owned())?;
        Ok(Self {
            raw: source.handle(),
            context,
        })
    }
}

impl Drop for SourceRef {
    fn drop(&mut self) {
        if let Some(release) = self.context.api().clReleaseMemObject {
            // SAFETY: this is the reference that `new` took.
            unsafe { release(self.raw.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_as_wide_as_both_ends_allow() {
        let part = |kernel, at, count| Part { kernel, at, count };
        assert_eq!(parts([32, 64], 16), [part(0, [2, 4], 1)]);
        assert_eq!(
            parts([32, 64], 41),
            [part(0, [2, 4], 2), part(1, [16, 24], 2), part(2, [72, 104], 1)]
        );
        assert_eq!(parts([4, 64], 40), [part(1, [1, 16], 10)]);
        assert_eq!(parts([3, 64], 40), [part(2, [3, 64], 40)]);
        assert_eq!(parts([0, 0], 3), [part(2, [0, 0], 3)]);
        assert_eq!(parts([16, 16], 0), []);
        let far = 5 << 30;
        assert_eq!(
            parts([far, 0], 20),
            [part(0, [far as u64 / 16, 0], 1), part(1, [far as u64 / 4 + 4, 4], 1)]
        );
    }
}
