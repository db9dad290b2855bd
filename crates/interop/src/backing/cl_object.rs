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

    /// Writes bytes from `begin` on, if they are not all of them through an object of their own: other
    /// parts may be in use.
    pub(crate) fn write_part(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        if data.len() == self.bytes() {
            return self.write(core, data);
        }
        let range = begin..begin + data.len();
        match self {
            Self::Own(buffer) => buffer.part_mut(range)?.write(&core.queue, data),
            Self::Foreign(buffer) => buffer.part_mut(range)?.write(&core.queue, data),
        }?;
        Ok(())
    }

    /// Reads bytes from `begin` on, as [`write_part`](Self::write_part).
    pub(crate) fn read_part(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        if data.len() == self.bytes() {
            return self.read(core, data);
        }
        let range = begin..begin + data.len();
        match self {
            Self::Own(buffer) => buffer.part(range)?.read(&core.queue, data),
            Self::Foreign(buffer) => buffer.part(range)?.read(&core.queue, data),
        }?;
        Ok(())
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
