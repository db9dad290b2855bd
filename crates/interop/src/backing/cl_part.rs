//! A stretch of memory as a kernel's argument.

use std::ffi::c_void;
use std::ops::Range;

use clmgr::Arg;
use clmgr::opencl_sys::{self, cl_buffer_region, cl_mem};

use super::Backing;
use crate::core::Core;
use crate::{Error, Result};

/// How some of the bytes are passed to OpenCL.
pub(crate) enum ClPart {
    /// All of them.
    Whole,
    /// An address in shared virtual memory.
    Address(usize),
    /// A part of a buffer object.
    Object(SubBuffer),
}

impl ClPart {
    /// `bytes` of the memory, which has as many.
    pub(crate) fn of(core: &Core, backing: &dyn Backing, bytes: Range<usize>) -> Result<Self> {
        if bytes == (0..backing.bytes()) {
            return Ok(Self::Whole);
        }
        match backing.cl_arg() {
            Arg::Svm(begin) => {
                let begin: *const c_void = begin.wrapping_byte_add(bytes.start);
                Ok(Self::Address(begin.expose_provenance()))
            }
            Arg::Mem(whole) => Ok(Self::Object(SubBuffer::new(core, whole, bytes)?)),
            Arg::Bytes(_) | Arg::Local(_) => {
                unreachable!("memory is given as an object or a pointer")
            }
        }
    }

    /// As a buffer object, for code that takes nothing else.
    pub(crate) fn object(core: &Core, backing: &dyn Backing, bytes: Range<usize>) -> Result<SubBuffer> {
        match backing.mem_arg()? {
            Arg::Mem(whole) => SubBuffer::new(core, whole, bytes),
            _ => unreachable!("a buffer object was asked for"),
        }
    }

    pub(crate) fn arg<'a>(&'a self, backing: &'a dyn Backing) -> Arg<'a> {
        match self {
            Self::Whole => backing.cl_arg(),
            Self::Address(address) => Arg::Svm(std::ptr::with_exposed_provenance(*address)),
            Self::Object(object) => object.arg(),
        }
    }
}

/// A reference to a part of a buffer object. Commands that received it keep it beyond that
/// (OpenCL, `clReleaseMemObject`).
pub(crate) struct SubBuffer {
    raw: usize,
    context: clmgr::Context,
}

impl SubBuffer {
    fn new(core: &Core, whole: cl_mem, bytes: Range<usize>) -> Result<Self> {
        let context = core.context.clone();
        let alignment = context.device().sub_buffer_alignment();
        if !bytes.start.is_multiple_of(alignment) {
            return Err(Error::SubBufferStart {
                start: bytes.start,
                alignment,
                device: context.device().name().to_owned(),
            });
        }
        let call = "clCreateSubBuffer";
        let create = context.api().clCreateSubBuffer;
        let create = create.ok_or(clmgr::Error::MissingFunction {
            symbol: call,
            since: "1.1",
        })?;
        let region = cl_buffer_region {
            origin: bytes.start,
            size: bytes.len(),
        };
        let mut code = 0;
        // SAFETY: the buffer is alive; flags of zero are those of the whole; the region lies in it
        // and is read before the call returns; `code` is a valid place.
        let raw = unsafe {
            create(
                whole,
                0,
                opencl_sys::CL_BUFFER_CREATE_TYPE_REGION,
                (&raw const region).cast(),
                &raw mut code,
            )
        };
        if code != opencl_sys::CL_SUCCESS {
            let call = format!("{call}({} bytes at {})", bytes.len(), bytes.start);
            return Err(clmgr::Error::Call { call, code }.into());
        }
        Ok(Self {
            raw: raw.expose_provenance(),
            context,
        })
    }

    pub(crate) fn arg(&self) -> Arg<'_> {
        Arg::Mem(std::ptr::with_exposed_provenance_mut(self.raw))
    }
}

impl Drop for SubBuffer {
    fn drop(&mut self) {
        if let Some(release) = self.context.api().clReleaseMemObject {
            // SAFETY: the reference of the creation is given back once. It cannot fail for a living
            // object, and nothing could be done about it.
            unsafe { release(std::ptr::with_exposed_provenance_mut(self.raw)) };
        }
    }
}
