//! The memory behind a shared buffer, one file per route.
//!
//! A backing moves bytes and reports addresses; [`Shared`](crate::Shared) decides who may use it when, and waits before
//! it calls here.

mod adopted_svm;
mod cl_object;
mod cl_part;
mod dma_buf;
mod external_fd;
mod gpu_va;
mod hip_object;
mod hip_pointer;
mod host_pinned;
mod imported;
mod managed;
mod outgoing;
mod rescue;
mod staging;
mod stretches;
pub(crate) mod survival;
mod svm;

use std::ops::Range;

pub(crate) use adopted_svm::AdoptedSvm;
pub(crate) use cl_object::ClObject;
pub(crate) use cl_part::{ClPart, SubBuffer};
pub(crate) use dma_buf::DmaBuf;
pub(crate) use external_fd::ExternalFd;
pub(crate) use gpu_va::{GpuVa, reveal};
pub(crate) use hip_object::HipObject;
pub(crate) use hip_pointer::HipPointer;
pub(crate) use imported::{Exported, Imported};
pub(crate) use outgoing::{Opens, Outgoing};
pub(crate) use rescue::{other, read_by_kernel};
pub(crate) use staging::Staging;

use crate::access::Span;
use crate::core::Core;
use crate::values::{Access, Carrier, Side};
use crate::{Error, Residency, Result, Route};

/// How kernels of another GPU reach memory.
pub(crate) enum PeerAccess<'a> {
    /// Once HIP has enabled the device's access, which covers what HIP allocated.
    Enabled,
    /// By HIP, for each mapping: its enabling does not cover virtual memory.
    Mapped(&'a hip::VirtualAccess),
    /// By the HSA runtime, for each allocation: HIP's enabling does not cover OpenCL's memory.
    Granted,
    /// Not at all.
    None,
}

/// Memory that both APIs reach.
pub(crate) trait Backing: Send + Sync {
    fn route(&self) -> Route;

    fn bytes(&self) -> usize;

    /// HIP's address of the first byte.
    fn hip_ptr(&self) -> *mut u8;

    /// Whether HIP allocated, registered or imported the memory itself, so its own copies may touch it.
    fn is_known_to_hip(&self) -> bool;

    /// The memory as a kernel's argument.
    fn cl_arg(&self) -> clmgr::Arg<'_>;

    /// The memory as a buffer object, for code that takes nothing else.
    fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        match self.cl_arg() {
            object @ clmgr::Arg::Mem(_) => Ok(object),
            _ => Err(Error::Unsupported {
                route: self.route(),
                reason: "a buffer object over HIP memory needs CL_MEM_USE_HOST_PTR, which a driver may refuse, copy or crash on; use the pointer argument, Bridge::alloc_hip_object with a proof that it works, or another route".into(),
            }),
        }
    }

    /// OpenCL's address of the first byte, where it is known.
    fn cl_address(&self) -> Option<usize>;

    /// Every address that the bytes are known to have.
    fn spans(&self) -> Vec<Span> {
        let hip = self.hip_ptr().addr();
        let cl = self.cl_address().filter(|&cl| cl != hip);
        let at = |address| Span::at(address, self.bytes());
        [hip].into_iter().chain(cl).map(at).collect()
    }

    fn residency(&self, core: &Core) -> Residency {
        core.hsa
            .as_ref()
            .and_then(|hsa| hsa.locate(self.hip_ptr().cast()))
            .map_or(Residency::Unknown, |found| found.residency)
    }

    fn transfers_by(&self) -> Side {
        Side::Cl
    }

    /// Whether the host has a part in every change of side, so it must wait for one, unless the hand-off [follows the
    /// queues](crate::handoff::Handoff::follows_queues) and the memory [changes sides by them](Self::leaves_by_queue).
    fn needs_host(&self) -> bool {
        false
    }

    /// Whether the whole belongs to one API at a time: parts of it cannot be on both sides at once.
    fn is_handed_whole(&self) -> bool {
        false
    }

    /// That this part can be used on its own.
    fn check_part(&self, _core: &Core, _bytes: &Range<usize>) -> Result<()> {
        Ok(())
    }

    /// Whether [`leave_cl`](Self::leave_cl) and [`bring_to_cl`](Self::bring_to_cl) use only commands on OpenCL queues.
    fn leaves_by_queue(&self) -> bool {
        false
    }

    /// Enqueues, without waiting, what lets HIP use the bytes. Called before a use by HIP, where the hand-off that
    /// follows puts HIP after it.
    fn leave_cl(&self, _access: Access) -> Result<()> {
        Ok(())
    }

    /// Makes these bytes current for commands of `queue`; no user whose access conflicts is at work.
    fn bring_to_cl(&self, _core: &Core, _queue: &clmgr::Queue, _access: Access, _bytes: &Range<usize>) -> Result<()> {
        Ok(())
    }

    /// Makes these bytes current for HIP; no user whose access conflicts is at work.
    fn bring_to_hip(&self, _core: &Core, _access: Access, _bytes: &Range<usize>) -> Result<()> {
        Ok(())
    }

    /// How kernels of another GPU reach the memory.
    fn peer_access(&self) -> PeerAccess<'_> {
        PeerAccess::None
    }

    /// What another process opens to reach the memory, which stays where it is for as long as this value lives.
    fn outgoing(&self, _core: &Core, carrier: Carrier) -> Result<Outgoing> {
        let reason = format!("this carrier does not support memory of route {}", self.route());
        Err(outgoing::refused(carrier, reason))
    }

    /// Writes bytes from `begin` on; complete when it returns. No other user of any bytes is at work.
    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()>;

    /// Reads bytes from `begin` on; complete when it returns. No writer of any bytes is at work.
    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()>;
}

/// New memory on exactly this route.
pub(crate) fn allocate(core: &Core, route: Route, bytes: usize) -> Result<Box<dyn Backing>> {
    gate(core, route)?;
    Ok(match route {
        Route::SvmCoarse => Box::new(svm::Svm::coarse(core, bytes)?),
        Route::SvmFine => Box::new(svm::Svm::fine(core, bytes)?),
        Route::GpuVa => Box::new(GpuVa::allocate(core, bytes)?),
        Route::ExternalFd => Box::new(ExternalFd::allocate(core, bytes)?),
        Route::DmaBuf => {
            let original = Box::new(svm::Svm::coarse(core, bytes)?);
            Box::new(DmaBuf::over(core, original)?)
        }
        Route::HipPointer => Box::new(HipPointer::allocate(core, bytes)?),
        Route::HostPinned => Box::new(host_pinned::HostPinned::allocate(core, bytes)?),
        Route::Managed => Box::new(managed::Managed::allocate(core, bytes)?),
        Route::Staging => Box::new(Staging::allocate(core, bytes)?),
    })
}

/// Refuses what could not work and would do harm if it were tried: a kernel on an address that is
/// not the device's ends the process or its context.
pub(crate) fn gate(core: &Core, route: Route) -> Result<()> {
    let reason = match route {
        _ if route.needs_one_address_space() && !core.platform.facts().one_address_space => {
            "OpenCL and HIP have separate address spaces on this GPU; use external-fd".to_owned()
        }
        Route::HipPointer if core.foreign.is_some_and(|hooks| !(hooks.reaches_hip)()) => {
            "the software device hides its memory from all other code (HIP_HOST_STRICT=2), including OpenCL; use svm-coarse".to_owned()
        }
        Route::DmaBuf => match dma_buf::refusal(core) {
            Some(reason) => reason,
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    Err(Error::Unsupported { route, reason })
}

/// That the runtime below HIP knows the memory, all of it, on the bridge's own device. A card that receives another
/// card's address faults, and ends the process.
pub(crate) fn check_place(core: &Core, route: Route, ptr: *const u8, bytes: usize) -> Result<()> {
    let Some(hsa) = &core.hsa else {
        return Ok(());
    };
    let address = ptr.addr();
    let Some(found) = hsa.locate(ptr.cast()) else {
        return Err(Error::UnknownAddress { route, address });
    };
    let inside = address
        .checked_sub(found.base)
        .is_some_and(|offset| offset <= found.bytes && bytes <= found.bytes - offset);
    if !inside {
        return Err(Error::OutsideAllocation {
            route,
            address,
            bytes,
            base: found.base,
            allocated: found.bytes,
        });
    }
    if found.residency != Residency::Vram {
        return Err(Error::NotOnDevice {
            route,
            address,
            residency: found.residency,
        });
    }
    let here = core.hip_device.pci_address()?;
    match found.owner {
        Some(owner) if !owner.is(&here) => Err(Error::OtherDevice {
            route,
            address,
            owner: owner.to_string(),
            expected: here.to_string(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::access::Span;
    use crate::{Bridge, Options};

    /// A guard shows the object, and `Bridge::adopt_cl_mem` takes it.
    #[test]
    fn a_buffer_object_that_a_guard_shows_is_a_span_of_its_memory() {
        let selection = platform::select_named(Some("host")).expect("the host platform");
        let bridge = Bridge::open(&selection, &Options::default())
            .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let mut objects = 0;
        for route in bridge.report().working() {
            let shared = bridge.alloc_on::<u8>(route, 4096).expect("memory");
            let backing = shared.allocation().backing();
            let clmgr::Arg::Mem(raw) = backing.cl_arg() else {
                continue;
            };
            let object = Span::of_object(raw, 0..4096);
            assert!(backing.spans().iter().any(|span| span.overlaps(&object)), "{route}");
            objects += 1;
        }
        assert!(objects > 0, "no route has buffer objects");
    }
}
