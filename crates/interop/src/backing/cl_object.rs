//! A buffer object, made here or by other code.

use clmgr::opencl_sys::{self, cl_mem};
use clmgr::{ExternalBuffer, Needs, RegularBuffer};

use crate::access::Span;
use crate::core::Core;
use crate::{Error, Result, Route};

pub(crate) enum ClObject {
    Own(RegularBuffer<u8>),
    /// Retained for as long as this lives, with its place in the object that it is a part of, or that it is.
    Foreign(ExternalBuffer<u8>, Span),
}

impl ClObject {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        Ok(Self::Own(RegularBuffer::new(&core.context, bytes)?))
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Own(buffer) => buffer.bytes(),
            Self::Foreign(buffer, _) => buffer.bytes(),
        }
    }

    pub(crate) fn arg(&self) -> clmgr::Arg<'_> {
        match self {
            Self::Own(buffer) => buffer.arg(),
            Self::Foreign(buffer, _) => buffer.arg(),
        }
    }

    /// The bytes as other objects over them are known.
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Own(buffer) => Span::of_object(buffer.raw(), 0..buffer.bytes()),
            Self::Foreign(_, span) => span.clone(),
        }
    }

    /// What kernels may do with it.
    pub(crate) fn access(&self) -> clmgr::Access {
        match self {
            Self::Own(buffer) => buffer.access().device,
            Self::Foreign(buffer, _) => buffer.access().device,
        }
    }

    /// Writes bytes from `begin` on; if they are not the whole, through a sub-buffer: other parts may be in use.
    pub(crate) fn write_part(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        let is_whole = data.len() == self.bytes();
        let range = begin..begin + data.len();
        match self {
            Self::Own(buffer) if is_whole => buffer.write(&core.queue, data),
            Self::Foreign(buffer, _) if is_whole => buffer.write(&core.queue, data),
            Self::Own(buffer) => buffer.part_mut(range)?.write(&core.queue, data),
            Self::Foreign(buffer, _) => buffer.part_mut(range)?.write(&core.queue, data),
        }?;
        Ok(())
    }

    /// Reads bytes from `begin` on, as [`write_part`](Self::write_part).
    pub(crate) fn read_part(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        let is_whole = data.len() == self.bytes();
        let range = begin..begin + data.len();
        match self {
            Self::Own(buffer) if is_whole => buffer.read(&core.queue, data),
            Self::Foreign(buffer, _) if is_whole => buffer.read(&core.queue, data),
            Self::Own(buffer) => buffer.part(range)?.read(&core.queue, data),
            Self::Foreign(buffer, _) => buffer.part(range)?.read(&core.queue, data),
        }?;
        Ok(())
    }

    /// Writes bytes from `begin` on; no other part is in use.
    pub(crate) fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        match self {
            Self::Own(buffer) => buffer.write_at(&core.queue, begin, data),
            Self::Foreign(buffer, _) => buffer.write_at(&core.queue, begin, data),
        }?;
        Ok(())
    }

    /// Reads bytes from `begin` on; no other part is being written.
    pub(crate) fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        match self {
            Self::Own(buffer) => buffer.read_at(&core.queue, begin, data),
            Self::Foreign(buffer, _) => buffer.read_at(&core.queue, begin, data),
        }?;
        Ok(())
    }
}

/// A buffer object over existing memory, which OpenCL is asked to use in place (`CL_MEM_USE_HOST_PTR`).
///
/// # Safety
/// `bytes` bytes are at `ptr` while the result lives, and OpenCL can be given them: they are shared
/// virtual memory of the bridge's context, or this was tried where a crash does no harm.
pub(super) unsafe fn in_place(core: &Core, route: Route, ptr: *mut u8, bytes: usize) -> Result<ExternalBuffer<u8>> {
    let api = core.context.api();
    let missing = |call: &str| Error::Unsupported {
        route,
        reason: format!("the OpenCL library has no {call}"),
    };
    let create = api.clCreateBuffer.ok_or_else(|| missing("clCreateBuffer"))?;
    let release = api.clReleaseMemObject.ok_or_else(|| missing("clReleaseMemObject"))?;
    let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
    let mut code = 0;
    // SAFETY: the context is alive, the memory is the caller's, `code` is a valid place.
    let raw: cl_mem = unsafe { create(core.context.raw(), flags, bytes, ptr.cast(), &raw mut code) };
    if code != opencl_sys::CL_SUCCESS {
        return Err(Error::Cl(clmgr::Error::Call {
            call: format!("clCreateBuffer(CL_MEM_USE_HOST_PTR, {bytes} bytes of route {route})"),
            code,
        }));
    }
    // SAFETY: a new object over memory that lives as long as the result.
    let view = unsafe { ExternalBuffer::wrap(&core.external, raw, Needs::default()) };
    // SAFETY: the reference of the creation; `view` has its own.
    unsafe { release(raw) };
    Ok(view?)
}
