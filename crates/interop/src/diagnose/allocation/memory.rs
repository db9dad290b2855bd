//! Memory by one of the calls, and where it lies.

use clmgr::{RegularBuffer, SvmBuffer};
use platform::ForeignKind;

use super::{Allocation, Whereabouts, Witness};
use crate::backing::{gate, reveal};
use crate::core::{Core, Known};
use crate::{Error, Residency, Result, Route};

/// Bytes by one of the calls.
pub(crate) struct Memory {
    // Dropped first: a model must forget the memory before OpenCL frees it.
    _known: Option<Known>,
    kind: Kind,
    /// Where kernels of both APIs find the first byte; `None` where OpenCL addresses mean nothing to HIP.
    address: Option<usize>,
    pub(super) bytes: usize,
    allocation: Allocation,
}

enum Kind {
    Buffer(RegularBuffer<u8>),
    Svm(SvmBuffer<u8>),
    /// Kept for its drop; its address is all that is used.
    Hip(#[allow(dead_code, reason = "kept for its drop")] Box<dyn std::any::Any>),
}

impl Memory {
    pub(crate) fn allocate(core: &Core, allocation: Allocation, bytes: usize) -> Result<Self> {
        let (context, device) = (&core.context, &core.hip_device);
        let (kind, address) = match allocation {
            Allocation::ClBuffer => by_buffer(core, RegularBuffer::new(context, bytes)?)?,
            Allocation::ClAllocHostPtr => by_buffer(core, RegularBuffer::on_host(context, bytes)?)?,
            Allocation::SvmCoarse => by_svm(SvmBuffer::coarse(context, bytes)?),
            Allocation::SvmFine => by_svm(SvmBuffer::fine(context, bytes)?),
            Allocation::HipMalloc => {
                let mut memory = device.alloc::<u8>(bytes)?;
                let address = memory.on_mut(&core.stream)?.as_mut_ptr().expose_provenance();
                (Kind::Hip(Box::new(memory)), Some(address))
            }
            Allocation::HipHostMalloc => {
                let memory = device.alloc_pinned::<u8>(bytes)?;
                let address = memory.device_ptr().expose_provenance();
                (Kind::Hip(Box::new(memory)), Some(address))
            }
            Allocation::HipMallocManaged => {
                let memory = device.alloc_managed::<u8>(bytes)?;
                let address = memory.as_ptr().expose_provenance();
                (Kind::Hip(Box::new(memory)), Some(address))
            }
        };
        let mut memory = Self {
            _known: None,
            kind,
            address,
            bytes,
            allocation,
        };
        if let (false, Some(address)) = (allocation.is_hip_call(), memory.address) {
            let place = match allocation {
                Allocation::ClAllocHostPtr | Allocation::SvmFine => ForeignKind::HostFine,
                _ => ForeignKind::Vram,
            };
            let start = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the allocation has this extent and is dropped after what is known of it.
            memory._known = unsafe { Known::make(core, start, bytes, place) }?;
        }
        Ok(memory)
    }

    /// The memory as an OpenCL kernel's argument.
    pub(super) fn cl_arg(&self, core: &Core) -> Result<clmgr::Arg<'_>> {
        match (&self.kind, self.address) {
            (Kind::Buffer(buffer), _) => Ok(buffer.arg()),
            (Kind::Svm(buffer), _) => Ok(buffer.arg()),
            (Kind::Hip(_), Some(address)) => {
                gate(core, self.route())?;
                Ok(clmgr::Arg::Svm(std::ptr::with_exposed_provenance(address)))
            }
            (Kind::Hip(_), None) => Err(self.unknown_address()),
        }
    }

    /// The memory's address for HIP's kernels.
    pub(super) fn hip_address(&self, core: &Core) -> Result<*mut u8> {
        if !self.allocation.is_hip_call() {
            gate(core, self.route())?;
        }
        let address = self.address.ok_or_else(|| self.unknown_address())?;
        Ok(std::ptr::with_exposed_provenance_mut(address))
    }

    pub(super) fn is_hip_call(&self) -> bool {
        self.allocation.is_hip_call()
    }

    fn unknown_address(&self) -> Error {
        Error::UnknownAddress {
            route: self.route(),
            address: 0,
        }
    }

    /// The route whose rules say whether the other API may use the memory by its address.
    pub(super) fn route(&self) -> Route {
        match self.allocation {
            Allocation::ClBuffer | Allocation::ClAllocHostPtr => Route::GpuVa,
            Allocation::SvmCoarse => Route::SvmCoarse,
            Allocation::SvmFine => Route::SvmFine,
            Allocation::HipMalloc => Route::HipPointer,
            Allocation::HipHostMalloc | Allocation::HipMallocManaged => Route::Managed,
        }
    }

    /// Where the memory lies.
    pub(crate) fn locate(&self, core: &Core) -> Result<Whereabouts> {
        let unknown = Whereabouts {
            residency: Residency::Unknown,
            witness: Witness::None,
        };
        let Some(address) = self.address else {
            return Ok(unknown);
        };
        let address = std::ptr::with_exposed_provenance(address);
        if let Some(found) = core.hsa.as_ref().and_then(|hsa| hsa.locate(address))
            && found.residency != Residency::Unknown
        {
            let is_registered = core.foreign.is_some() && !self.allocation.is_hip_call();
            return Ok(Whereabouts {
                residency: found.residency,
                witness: if is_registered {
                    Witness::Registered
                } else {
                    Witness::Hsa
                },
            });
        }
        // Of memory that OpenCL allocated HIP says "device", whatever it is.
        if !self.allocation.is_hip_call() {
            return Ok(unknown);
        }
        let told = core.hip.pointer_info(address)?;
        let residency = match told.map(|told| told.kind) {
            Some(hip::MemoryKind::Device) => Residency::Vram,
            Some(hip::MemoryKind::Host) => Residency::HostPinned,
            Some(hip::MemoryKind::Managed) => Residency::Managed,
            _ => return Ok(unknown),
        };
        Ok(Whereabouts {
            residency,
            witness: Witness::Hip,
        })
    }
}

fn by_buffer(core: &Core, buffer: RegularBuffer<u8>) -> Result<(Kind, Option<usize>)> {
    // Where each API has a context of its own on the card the number would be of no use.
    let address = match core.platform.facts().one_address_space {
        true => Some(reveal(core, buffer.arg(), true)?),
        false => None,
    };
    Ok((Kind::Buffer(buffer), address))
}

fn by_svm(buffer: SvmBuffer<u8>) -> (Kind, Option<usize>) {
    let address = buffer.as_ptr().expose_provenance();
    (Kind::Svm(buffer), Some(address))
}
