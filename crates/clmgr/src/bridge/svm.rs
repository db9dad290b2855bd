//! Copies of shared virtual memory by its addresses.

use bytemuck::Pod;

use super::BufferBridge;
use super::foreign::is_lasting;
use crate::buffer::SvmBuffer;
use crate::context::Context;
use crate::device::{DeviceKind, SvmCapabilities, Verdict};
use crate::error::{Error, Result};
use crate::queue::Queue;

impl BufferBridge {
    /// Copies shared virtual memory by its addresses, without staging, and waits.
    ///
    /// Between contexts it requires that patterns went that way, and is tried where a driver can be expected to use an
    /// address of another context: on a processor, and on an AMD device, whose driver keeps one map of its memory for
    /// all contexts (clr: rocclr/platform/memory.hpp, `MemObjMap`). Elsewhere a driver may take an address that it does
    /// not know for the host's and crash. NVIDIA's (driver 580) reports success and copies nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with the reason where it is not possible: then
    /// [`copy`](Self::copy) a view of the source into a buffer object. [`Error::LengthMismatch`],
    /// [`Error::ContextMismatch`], or an error from `clEnqueueSVMMemcpy`.
    pub fn try_copy_svm<T: Pod>(&self, source: &SvmBuffer<T>, target: &mut SvmBuffer<T>) -> Result<()> {
        if source.context() != self.from.context() || target.context() != self.to.context() {
            return Err(Error::ContextMismatch {
                what: "a buffer of the copy",
            });
        }
        if let Err(reason) = self.svm_verdict() {
            return Err(Error::NotSupported {
                what: "a copy of shared virtual memory between contexts".to_owned(),
                device: self.to.context().device().name().to_owned(),
                reason,
            });
        }
        source.settle_all(&self.from)?;
        target.copy_from_address(&self.to, source.as_ptr(), source.len())
    }

    /// Found out once. A trial that failed for lack of memory or the like is repeated.
    fn svm_verdict(&self) -> Verdict {
        if let Some(known) = &*self.svm.lock() {
            return known.clone();
        }
        let (verdict, lasting) = match self.svm_without_trial() {
            Some(verdict) => (verdict, true),
            None => {
                let carried = self.try_svm();
                let lasting = is_lasting(&carried);
                let verdict = match carried {
                    Ok(true) => Ok(()),
                    Ok(false) => Err("a pattern did not arrive".to_owned()),
                    Err(error) => Err(error.to_string()),
                };
                (verdict, lasting)
            }
        };
        if lasting {
            *self.svm.lock() = Some(verdict.clone());
        }
        verdict
    }

    /// What the kinds of devices imply.
    fn svm_without_trial(&self) -> Option<Verdict> {
        let refused = |reason: &str| Some(Err(reason.to_owned()));
        let (from, to) = (self.from.context(), self.to.context());
        if from == to {
            return Some(Ok(()));
        }
        let device = to.device();
        if from.device() != device || !device.shares_library(from.device()) {
            return refused("the contexts belong to different devices");
        }
        let one_map = device.platform_version().contains("AMD-APP");
        if device.kind() != DeviceKind::Cpu && !one_map {
            return refused("it is not known whether its driver accepts addresses of another context");
        }
        if !to.device().svm().contains(SvmCapabilities::COARSE) {
            return refused("the device has no shared virtual memory");
        }
        None
    }

    /// In contexts of its own first: a GPU that faults takes its context along.
    fn try_svm(&self) -> Result<bool> {
        let device = self.to.context().device();
        let (there, here) = (Context::new(device)?, Context::new(device)?);
        Ok(carries_patterns(&there.queue()?, &here.queue()?)?
            && carries_patterns(&self.from.context().queue()?, &self.to.context().queue()?)?)
    }
}

/// Whether patterns arrive, the second one too: the first could be a copy that the driver keeps. The queues are the
/// trial's own, and idle afterwards: a process that ends while a released queue unmaps memory makes Intel's OpenCL
/// abort.
fn carries_patterns(from: &Queue, to: &Queue) -> Result<bool> {
    const LEN: usize = 4096;
    let mut there = SvmBuffer::coarse(from.context(), LEN)?;
    let mut here = SvmBuffer::coarse(to.context(), LEN)?;
    for seed in [0x9E37_79B9u32, 0x85EB_CA6B] {
        let pattern: Vec<u32> = (0..LEN as u32).map(|n| (n ^ seed).wrapping_mul(seed)).collect();
        there.write(from, &pattern)?;
        here.copy_from_address(to, there.as_ptr(), LEN)?;
        let mut got = vec![0; LEN];
        here.read(to, &mut got)?;
        if got != pattern {
            return Ok(false);
        }
    }
    from.finish()?;
    to.finish()?;
    Ok(true)
}
