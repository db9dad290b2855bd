//! HIP's memory, given to OpenCL's kernels as a raw pointer.
//!
//! AMD's OpenCL passes any pointer through to the kernel (opencl/amdocl/cl_svm.cpp,
//! `clSetKernelArgSVMPointer`), but it does not track memory that it did not allocate: two kernels
//! of one queue that share nothing else may overlap. [`clmgr::Kernel::launch`] sees to that. Only
//! kernels take such a pointer: OpenCL's own copies, fills and maps of it go wrong or crash, so
//! that bytes from and to the host go through HIP.

use super::{Backing, Side, check_place};
use crate::core::Core;
use crate::{Error, Result, Route};
use std::any::Any;

/// What keeps memory of other code, or this crate's own allocation.
pub(crate) type Owner = Box<dyn Any + Send + Sync>;

pub(crate) struct HipPointer {
    _owner: Owner,
    address: usize,
    bytes: usize,
}

impl HipPointer {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        let mut memory = core.hip_device.alloc::<u8>(bytes)?;
        let ptr = memory.on_mut(&core.stream)?.as_mut_ptr();
        check_place(core, Route::HipPointer, ptr, bytes)?;
        Ok(Self {
            address: ptr.expose_provenance(),
            _owner: Box::new(memory),
            bytes,
        })
    }

    /// Memory that HIP allocated for other code.
    ///
    /// # Safety
    /// It is not freed while `owner` lives.
    pub(crate) unsafe fn adopted(
        core: &Core,
        ptr: *mut u8,
        bytes: usize,
        owner: Owner,
    ) -> Result<Self> {
        const ROUTE: Route = Route::HipPointer;
        super::gate(core, ROUTE)?;
        let address = ptr.expose_provenance();
        // HIP itself has to know the memory: its own copies move the bytes.
        let (base, allocated) =
            core.hip_device
                .allocation_of(ptr.cast())?
                .ok_or(Error::UnknownAddress {
                    route: ROUTE,
                    address,
                })?;
        let base = base.addr();
        if address - base > allocated || bytes > allocated - (address - base) {
            return Err(Error::OutsideAllocation {
                route: ROUTE,
                address,
                bytes,
                base,
                allocated,
            });
        }
        check_place(core, ROUTE, ptr, bytes)?;
        Ok(Self {
            _owner: owner,
            address,
            bytes,
        })
    }
}

impl Backing for HipPointer {
    fn route(&self) -> Route {
        Route::HipPointer
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_hips(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Svm(std::ptr::with_exposed_provenance(self.address))
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.address)
    }

    fn transfers_by(&self) -> Side {
        Side::Hip
    }

    fn write(&mut self, core: &Core, data: &[u8]) -> Result<()> {
        // SAFETY: HIP's own memory of this size, which lives as long as this value; the caller was
        // admitted as the only user, on the stream, which is waited for.
        unsafe { write_by_hip(core, self.hip_ptr(), data) }
    }

    fn read(&self, core: &Core, data: &mut [u8]) -> Result<()> {
        // SAFETY: as `write`; the caller was admitted as a reader.
        unsafe { read_by_hip(core, self.hip_ptr(), data) }
    }
}

/// # Safety
/// `data.len()` bytes at `ptr` are HIP's own, and nobody else uses them until this returns.
pub(super) unsafe fn write_by_hip(core: &Core, ptr: *mut u8, data: &[u8]) -> Result<()> {
    // SAFETY: the caller's promise; the copy is waited for.
    let mut slice =
        unsafe { hip::DeviceSliceMut::from_hip_raw_parts(ptr, data.len(), &core.stream) };
    Ok(slice.copy_from_slice(data)?)
}

/// # Safety
/// `data.len()` bytes at `ptr` are HIP's own, and nobody writes them until this returns.
pub(super) unsafe fn read_by_hip(core: &Core, ptr: *const u8, data: &mut [u8]) -> Result<()> {
    // SAFETY: the caller's promise; the copy is waited for.
    let slice = unsafe { hip::DeviceSlice::from_hip_raw_parts(ptr, data.len(), &core.stream) };
    Ok(slice.copy_to_slice(data)?)
}
