//! HIP's managed memory: one address for host, HIP and OpenCL's kernels.
//!
//! OpenCL knows it no better than any other HIP pointer, so what [`HipPointer`](super::hip_pointer::HipPointer) says
//! holds here too.

use super::Backing;
use super::hip_pointer::{read_by_hip, write_by_hip};
use crate::core::Core;
use crate::values::Side;
use crate::{Residency, Result, Route};

pub(crate) struct Managed {
    buffer: hip::ManagedBuffer<u8>,
}

impl Managed {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        Ok(Self {
            buffer: core.hip_device.alloc_managed(bytes)?,
        })
    }
}

impl Backing for Managed {
    fn route(&self) -> Route {
        Route::Managed
    }

    fn bytes(&self) -> usize {
        self.buffer.len()
    }

    fn hip_ptr(&self) -> *mut u8 {
        self.buffer.as_ptr().cast_mut()
    }

    fn is_known_to_hip(&self) -> bool {
        true
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        clmgr::Arg::Svm(self.buffer.as_ptr().cast())
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.buffer.as_ptr().addr())
    }

    fn residency(&self, _core: &Core) -> Residency {
        Residency::Managed
    }

    fn transfers_by(&self) -> Side {
        Side::Hip
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        write_by_hip(core, self, begin, data)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        read_by_hip(core, self, begin, data)
    }
}
