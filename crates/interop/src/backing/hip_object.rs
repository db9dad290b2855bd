//! HIP's memory as a buffer object, for OpenCL code that takes nothing else.
//!
//! `CL_MEM_USE_HOST_PTR` is specified for memory of the host. AMD's OpenCL looks the address up among its own memory
//! and else locks host pages (opencl/amdocl/cl_memobj.cpp and rocclr/device/rocm/rocmemory.cpp); what that does for the
//! card's memory is unknown: hence the [`HostPtrProof`](crate::HostPtrProof). OpenCL receives the object and never the
//! bare address, so it orders the object's kernels like those of any other.

use super::cl_object::{ClObject, in_place};
use super::gpu_va::reveal;
use super::hip_pointer::HipPointer;
use super::{Backing, Outgoing, PeerAccess};
use crate::access::Span;
use crate::core::Core;
use crate::values::{Carrier, Side};
use crate::{Error, Result, Route};

pub(crate) struct HipObject {
    // Dropped first: OpenCL must let go of the memory before it is freed.
    object: ClObject,
    memory: HipPointer,
}

impl HipObject {
    /// # Safety
    /// OpenCL can be given HIP's memory so: it was tried where a crash does no harm.
    pub(crate) unsafe fn over(core: &Core, memory: HipPointer) -> Result<Self> {
        super::gate(core, Route::HipPointer)?;
        // SAFETY: the memory lives longer than the object; the rest is the caller's promise.
        let object = unsafe { in_place(core, Route::HipPointer, memory.hip_ptr(), memory.bytes()) }?;
        let place = Span::of_object(object.raw(), 0..memory.bytes());
        Ok(Self {
            object: ClObject::Foreign(object, place),
            memory,
        })
    }

    /// That OpenCL's kernels get HIP's address, and no copy's.
    pub(crate) fn check_address(&self, core: &Core) -> Result<()> {
        let (cl, hip) = (
            reveal(core, self.object.arg(), self.object.access().reads())?,
            self.memory.hip_ptr().addr(),
        );
        match cl == hip {
            true => Ok(()),
            false => Err(Error::AddressesDiffer {
                route: Route::HipPointer,
                cl,
                hip,
            }),
        }
    }
}

impl Backing for HipObject {
    fn route(&self) -> Route {
        Route::HipPointer
    }

    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        self.memory.hip_ptr()
    }

    fn is_known_to_hip(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.object.arg()
    }

    fn cl_address(&self) -> Option<usize> {
        self.memory.cl_address()
    }

    fn spans(&self) -> Vec<Span> {
        let address = Span::at(self.memory.hip_ptr().addr(), self.bytes());
        vec![address, self.object.span()]
    }

    fn transfers_by(&self) -> Side {
        Side::Hip
    }

    fn peer_access(&self) -> PeerAccess<'_> {
        self.memory.peer_access()
    }

    fn outgoing(&self, core: &Core, carrier: Carrier) -> Result<Outgoing> {
        self.memory.outgoing(core, carrier)
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        self.memory.write(core, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        self.memory.read(core, begin, data)
    }
}
