//! A buffer object, made here or by other code.

use crate::Result;
use crate::core::Core;
use clmgr::{ExternalBuffer, RegularBuffer};

pub(crate) enum ClObject {
    Own(RegularBuffer<u8>),
    /// Retained for as long as this lives.
    Foreign(ExternalBuffer<u8>),
}

impl ClObject {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        Ok(Self::Own(RegularBuffer::new(&core.context, bytes)?))
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Own(buffer) => buffer.bytes(),
            Self::Foreign(buffer) => buffer.bytes(),
        }
    }

    pub(crate) fn arg(&self) -> clmgr::Arg<'_> {
        match self {
            Self::Own(buffer) => buffer.arg(),
            Self::Foreign(buffer) => buffer.arg(),
        }
    }

    /// What kernels may do with it.
    pub(crate) fn access(&self) -> clmgr::Access {
        match self {
            Self::Own(buffer) => buffer.access().device,
            Self::Foreign(buffer) => buffer.access().device,
        }
    }

    pub(crate) fn write(&mut self, core: &Core, data: &[u8]) -> Result<()> {
        match self {
            Self::Own(buffer) => buffer.write(&core.queue, data),
            Self::Foreign(buffer) => buffer.write(&core.queue, data),
        }?;
        Ok(())
    }

    pub(crate) fn read(&self, core: &Core, data: &mut [u8]) -> Result<()> {
        match self {
            Self::Own(buffer) => buffer.read(&core.queue, data),
            Self::Foreign(buffer) => buffer.read(&core.queue, data),
        }?;
        Ok(())
    }
}
