//! Shared virtual memory that other code allocated.

use clmgr::{ExternalBuffer, SvmGrain};
use platform::ForeignKind;

use super::cl_object::in_place;
use super::hip_pointer::Owner;
use super::{Backing, check_place};
use crate::core::{Core, Known};
use crate::{Error, Result, Route};

pub(crate) struct AdoptedSvm {
    // Dropped first: a model must forget the memory before its owner may free it.
    _known: Option<Known>,
    /// The memory as a buffer object, by which bytes come from and go to the host.
    view: ExternalBuffer<u8>,
    address: usize,
    route: Route,
    _owner: Owner,
}

impl AdoptedSvm {
    /// # Safety
    /// `bytes` bytes of shared virtual memory of the bridge's context are at `ptr` while `owner`
    /// lives.
    pub(crate) unsafe fn new(core: &Core, ptr: *mut u8, bytes: usize, grain: SvmGrain, owner: Owner) -> Result<Self> {
        let (kind, route) = match grain {
            SvmGrain::Coarse => (ForeignKind::Vram, Route::SvmCoarse),
            SvmGrain::Fine => (ForeignKind::HostFine, Route::SvmFine),
            SvmGrain::System => {
                return Err(Error::Unsupported {
                    route: Route::SvmFine,
                    reason:
                        "HIP does not know memory of the host's own allocator; register it, as route host-pinned does"
                            .into(),
                });
            }
        };
        super::gate(core, route)?;
        // SAFETY: the caller's promise; the owner is dropped after the result.
        let known = unsafe { Known::make(core, ptr.cast(), bytes, kind) }?;
        if grain == SvmGrain::Coarse {
            check_place(core, route, ptr, bytes)?;
        }
        // SAFETY: as above.
        let view = unsafe { in_place(core, route, ptr, bytes) }?;
        Ok(Self {
            _known: known,
            view,
            address: ptr.expose_provenance(),
            route,
            _owner: owner,
        })
    }
}

impl Backing for AdoptedSvm {
    fn route(&self) -> Route {
        self.route
    }

    fn bytes(&self) -> usize {
        self.view.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_known_to_hip(&self) -> bool {
        false
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Svm(std::ptr::with_exposed_provenance(self.address))
    }

    fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        Ok(self.view.arg())
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.address)
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        Ok(self.view.write_at(&core.queue, begin, data)?)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        Ok(self.view.read_at(&core.queue, begin, data)?)
    }
}
