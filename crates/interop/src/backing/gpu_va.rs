//! A plain `cl_mem`; HIP uses the address that a kernel reports.
//!
//! AMD's OpenCL has no query for a buffer's address: `clGetMemObjectInfo` answers only the specification's properties
//! (opencl/amdocl/cl_memobj.cpp). A kernel of one work-item that writes its own argument knows it, since the runtime
//! puts the device's address into the argument (rocclr/platform/kernel.cpp). In a context of one device the buffer
//! stays there for its life. The HSA runtime then confirms whose memory it is.

use platform::ForeignKind;

use super::cl_object::ClObject;
use super::{Backing, Outgoing, PeerAccess, check_place};
use crate::access::Span;
use crate::core::{Core, Known};
use crate::values::Carrier;
use crate::{Category, Error, Result, Route};

pub(crate) struct GpuVa {
    // Dropped first: a model must forget the memory before OpenCL frees it.
    _known: Option<Known>,
    object: ClObject,
    address: usize,
}

impl GpuVa {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        Self::over(core, ClObject::allocate(core, bytes)?, 0, bytes)
    }

    /// HIP's way to an object that begins `offset` bytes into an allocation of `whole` bytes.
    pub(crate) fn over(core: &Core, object: ClObject, offset: usize, whole: usize) -> Result<Self> {
        let address = reveal(core, object.arg(), object.access().reads())?;
        let bytes = object.bytes();
        let base = address.checked_sub(offset).ok_or(Error::UnknownAddress {
            route: Route::GpuVa,
            address,
        })?;
        let start = std::ptr::with_exposed_provenance_mut(base);
        // SAFETY: a kernel of the device told the address of the object, whose allocation has this
        // extent and lives longer than the result.
        let known = unsafe { Known::make(core, start, whole, ForeignKind::Vram) }?;
        let ptr = std::ptr::with_exposed_provenance::<u8>(address);
        check_place(core, Route::GpuVa, ptr, bytes)?;
        Ok(Self {
            _known: known,
            object,
            address,
        })
    }
}

/// An object's address, by a kernel of one work-item; `readable` says whether kernels may read the object.
pub(crate) fn reveal(core: &Core, object: clmgr::Arg<'_>, readable: bool) -> Result<usize> {
    let _scope = core.meter.scope(Category::Control);
    let program = core.programs.get(include_str!("../../kernels/reveal.cl"), "")?;
    let kernel = program.kernel(if readable { "reveal" } else { "reveal_written" })?;
    let mut told = [0_u64];
    let answer = clmgr::RegularBuffer::<u64>::new(&core.context, 1)?;
    let args = [object, answer.arg()];
    // SAFETY: both kernels take two buffers, look at the address of the first only, and write one
    // number to the second.
    unsafe { kernel.launch(&core.queue, clmgr::NdRange::d1(1), &args) }?;
    answer.read(&core.queue, &mut told)?;
    match usize::try_from(told[0]) {
        Ok(address) if address != 0 => Ok(address),
        _ => Err(Error::UnknownAddress {
            route: Route::GpuVa,
            address: 0,
        }),
    }
}

impl Backing for GpuVa {
    fn route(&self) -> Route {
        Route::GpuVa
    }

    fn bytes(&self) -> usize {
        self.object.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn is_known_to_hip(&self) -> bool {
        false
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.object.arg()
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.address)
    }

    fn spans(&self) -> Vec<Span> {
        vec![Span::at(self.address, self.bytes()), self.object.span()]
    }

    fn peer_access(&self) -> PeerAccess<'_> {
        PeerAccess::Granted
    }

    fn outgoing(&self, core: &Core, carrier: Carrier) -> Result<Outgoing> {
        match carrier {
            Carrier::DmaBuf => Outgoing::dma_buf(core, self.hip_ptr(), self.bytes()),
            _ => Err(super::outgoing::refused(
                carrier,
                "the memory belongs to OpenCL, and HIP cannot share it".into(),
            )),
        }
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        self.object.write(core, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        self.object.read(core, begin, data)
    }
}
