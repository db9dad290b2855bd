//! Memory as another process can open it.

use std::os::fd::OwnedFd;

use crate::core::Core;
use crate::values::Carrier;
use crate::{Error, Result};

/// What the other process needs, besides the number of bytes.
pub(crate) struct Outgoing {
    /// Where the memory begins in what is opened, in bytes.
    pub(crate) offset: usize,
    pub(crate) opens: Opens,
}

/// What is opened.
pub(crate) enum Opens {
    Fd(OwnedFd),
    Handle([u8; 64]),
}

impl Outgoing {
    /// The descriptor of HIP virtual memory, which holds nothing else.
    pub(super) fn hip_fd(exporter: &hip::Exporter) -> Result<Self> {
        // SAFETY: it leaves by a link, whose other end takes turns with this one, or by an unsafe call of the bridge.
        let fd = unsafe { exporter.export() }?;
        Ok(Self {
            offset: 0,
            opens: Opens::Fd(fd),
        })
    }

    /// The block that the memory lies in, by the HSA runtime. Memory that was itself imported must not come here: see
    /// [`Hsa::export`](crate::core::Hsa::export).
    pub(super) fn dma_buf(core: &Core, ptr: *const u8, bytes: usize) -> Result<Self> {
        let refused = |reason| refused(Carrier::DmaBuf, reason);
        if let Some(reason) = super::dma_buf::refusal(core) {
            return Err(refused(reason));
        }
        let Some(hsa) = &core.hsa else {
            return Err(refused("there is no HSA runtime that could export memory".into()));
        };
        let exported = hsa.export(ptr.cast(), bytes).map_err(refused)?;
        Ok(Self {
            offset: exported.offset,
            opens: Opens::Fd(exported.fd),
        })
    }

    /// The allocation of `hipMalloc` that the memory lies in.
    ///
    /// # Safety
    /// The memory is not freed while the other process uses it.
    pub(super) unsafe fn ipc(core: &Core, ptr: *const u8) -> Result<Self> {
        let Some((base, _)) = core.hip_device.allocation_of(ptr.cast())? else {
            return Err(refused(Carrier::IpcHandle, "HIP does not know the memory".into()));
        };
        // What the handle opens is the allocation, whatever address in it was asked about.
        // SAFETY: the allocation is alive, and is not freed by the caller's promise.
        let handle = unsafe { core.hip_device.share_allocation(base) }?;
        Ok(Self {
            offset: ptr.addr() - base.addr(),
            opens: Opens::Handle(handle.bytes),
        })
    }
}

/// That memory cannot go this way.
pub(super) fn refused(carrier: Carrier, reason: String) -> Error {
    crate::PeerError::NotPossible {
        tried: vec![(carrier, reason)],
    }
    .into()
}
