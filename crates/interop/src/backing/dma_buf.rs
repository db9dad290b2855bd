//! OpenCL's memory as a dma-buf that HIP imports: a second address for the same pages.
//!
//! HIP knows an import as memory of its own, with bounds, so its copies, peers and processes may use it, which they
//! must not do with a bare OpenCL address.

use std::ops::Range;
use std::os::fd::AsFd;

use super::survival::Survival;
use super::{Backing, Outgoing};
use crate::access::{Space, Span};
use crate::core::Core;
use crate::values::{Access, Carrier};
use crate::{Error, Residency, Result, Route};

/// Imports are whole pages.
const PAGE: usize = 4096;

/// The first release on which programs crashed after an export (see [`survival`](super::survival)), as HIP numbers it;
/// none is known to be free of it again.
const CRASHES_SINCE: i32 = 7 * 10_000_000 + 2 * 100_000;

pub(crate) struct DmaBuf {
    // In the order of the drops: both releases of the import, then the memory itself.
    _alias: hip::DeviceBuffer<u8>,
    _import: hip::ExternalMemory,
    address: usize,
    /// The memory's place in the exported block, by which another import of it is recognised.
    file: Option<Span>,
    original: Box<dyn Backing>,
}

/// Why exporting is not tried, if it is not.
pub(super) fn refusal(core: &Core) -> Option<String> {
    if core.hsa.is_none() {
        return Some("there is no HSA runtime that could export memory".into());
    }
    let version = core.hip.versions().ok()?.runtime;
    let is_known = || *core.survives_exports.get_or_init(|| Survival::of(core).is_known());
    (version >= CRASHES_SINCE && !core.force_dma_buf && !is_known()).then(|| {
        format!(
            "HIP {}.{} may crash after an export (rocm-systems issue 8517), and no probe has shown that it does not on this machine; run `hipcl doctor`, which tries it in a separate process and keeps the result, or set Options::force_dma_buf",
            version / 10_000_000,
            version / 100_000 % 100
        )
    })
}

impl DmaBuf {
    /// Exports memory that OpenCL owns and imports it to HIP.
    pub(crate) fn over(core: &Core, original: Box<dyn Backing>) -> Result<Self> {
        super::gate(core, Route::DmaBuf)?;
        let unsupported = |reason| Error::Unsupported {
            route: Route::DmaBuf,
            reason,
        };
        let hsa = core
            .hsa
            .as_ref()
            .ok_or_else(|| unsupported("there is no HSA runtime that could export memory".into()))?;
        let bytes = original.bytes();
        let exported = hsa.export(original.hip_ptr().cast(), bytes).map_err(unsupported)?;
        // The descriptor is that of a block, in which the memory begins at the offset. HIP maps it
        // from the start: up to ROCm 7.1 its copies take a pointer mapped at an offset for the
        // start (rocm-systems pull request 1749).
        let size = (exported.offset + bytes).next_multiple_of(PAGE);
        // SAFETY: a block is whole pages, and holds the memory at the offset.
        let import = unsafe { core.hip_device.import_memory(exported.fd.as_fd(), size) }?;
        let file = Space::of_file(exported.fd.as_fd()).map(|space| Span {
            space,
            range: exported.offset..exported.offset + bytes,
        });
        // HIP leaves the descriptor to the caller, unlike CUDA; the import keeps the pages.
        drop(exported.fd);
        // SAFETY: the backing's user is admitted before it uses either address.
        let mut alias = unsafe { import.buffer::<u8>(exported.offset, bytes) }?;
        let address = alias.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
        Ok(Self {
            _alias: alias,
            _import: import,
            address,
            file,
            original,
        })
    }
}

impl Backing for DmaBuf {
    fn route(&self) -> Route {
        Route::DmaBuf
    }

    fn bytes(&self) -> usize {
        self.original.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_known_to_hip(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.original.cl_arg()
    }

    fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        self.original.mem_arg()
    }

    fn cl_address(&self) -> Option<usize> {
        self.original.cl_address()
    }

    fn spans(&self) -> Vec<Span> {
        let mut spans = self.original.spans();
        spans.push(Span::at(self.address, self.bytes()));
        spans.extend(self.file.clone());
        spans
    }

    /// That of the exported memory: an import is no API's allocation.
    fn residency(&self, core: &Core) -> Residency {
        self.original.residency(core)
    }

    fn bring_to_cl(&self, core: &Core, queue: &clmgr::Queue, access: Access, bytes: &Range<usize>) -> Result<()> {
        self.original.bring_to_cl(core, queue, access, bytes)
    }

    /// By the memory itself: an import must not be exported again.
    fn outgoing(&self, core: &Core, carrier: Carrier) -> Result<Outgoing> {
        self.original.outgoing(core, carrier)
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        self.original.write(core, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        self.original.read(core, begin, data)
    }
}
