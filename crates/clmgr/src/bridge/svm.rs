//! Copies of shared virtual memory by its addresses.

use bytemuck::Pod;

use super::BufferBridge;
use crate::buffer::SvmBuffer;
use crate::context::Context;
use crate::device::{DeviceKind, SvmCapabilities};
use crate::error::{Error, Result};
use crate::queue::Queue;

impl BufferBridge {
    /// Copies shared virtual memory by its addresses, without staging, and waits.
    ///
    /// Between contexts it is done after patterns went that way, and tried where a driver can be
    /// expected to use an address of another context: on a processor, and on an AMD device, whose
    /// driver keeps one map of its memory for all contexts (clr: rocclr/platform/memory.hpp,
    /// `MemObjMap`). Elsewhere a driver may take an address that it does not know for the host's and
    /// crash. NVIDIA's (driver 580) reports success and copies nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with the reason where it is not possible: then
    /// [`copy`](Self::copy) a view of the source into a buffer object. [`Error::LengthMismatch`], [`Error::ContextMismatch`], or what
    /// `clEnqueueSVMMemcpy` answers.
    pub fn try_copy_svm<T: Pod>(
        &self,
        source: &SvmBuffer<T>,
        target: &mut SvmBuffer<T>,
    ) -> Result<()> {
        if source.context() != self.from.context() || target.context() != self.to.context() {
            return Err(Error::ContextMismatch {
                what: "a buffer of the copy",
            });
        }
        let probed = self.svm.get_or_init(|| self.probe_svm());
        if let Err(reason) = probed {
            return Err(Error::NotSupported {
                what: "a copy of shared virtual memory between contexts".to_owned(),
                device: self.to.context().device().name().to_owned(),
                reason: reason.clone(),
            });
        }
        source.settle_all(&self.from)?;
        target.copy_from_address(&self.to, source.as_ptr(), source.len())
    }

    fn probe_svm(&self) -> std::result::Result<(), String> {
        let (from, to) = (self.from.context(), self.to.context());
        if from == to {
            return Ok(());
        }
        let device = to.device();
        if from.device() != device || !device.shares_library(from.device()) {
            return Err("the contexts are of two devices".to_owned());
        }
        let one_map = device.platform_version().contains("AMD-APP");
        if device.kind() != DeviceKind::Cpu && !one_map {
            return Err("its driver is not known to take addresses of another context".to_owned());
        }
        if !to.device().svm().contains(SvmCapabilities::COARSE) {
            return Err("it has no shared virtual memory".to_owned());
        }
        // In contexts of its own first: a GPU that faults takes its context along.
        let carried = || -> Result<bool> {
            let (there, here) = (Context::new(device)?, Context::new(device)?);
            Ok(carries_patterns(&there.queue()?, &here.queue()?)?
                && carries_patterns(&self.from.context().queue()?, &self.to.context().queue()?)?)
        };
        match carried() {
            Ok(true) => Ok(()),
            Ok(false) => Err("a pattern did not arrive".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether patterns arrive, the second one too: the first could be a copy that the driver keeps.
fn carries_patterns(from: &Queue, to: &Queue) -> Result<bool> {
    const LEN: usize = 4096;
    let mut there = SvmBuffer::coarse(from.context(), LEN)?;
    let mut here = SvmBuffer::coarse(to.context(), LEN)?;
    for seed in [0x9E37_79B9u32, 0x85EB_CA6B] {
        let pattern: Vec<u32> = (0..LEN as u32)
            .map(|n| (n ^ seed).wrapping_mul(seed))
            .collect();
        there.write(from, &pattern)?;
        here.copy_from_address(to, there.as_ptr(), LEN)?;
        let mut got = vec![0; LEN];
        here.read(to, &mut got)?;
        if got != pattern {
            return Ok(false);
        }
    }
    Ok(true)
}
