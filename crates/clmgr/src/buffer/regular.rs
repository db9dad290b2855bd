//! A plain `cl_mem`.

use std::fmt;
use std::ops::Range;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use super::object::{BoxLayout, ClMap, ClMapMut, MemRef, Object, SubBuffer, SubBufferMut, object_methods};
use super::pending::Pending;
use crate::access::BufferAccess;
use crate::context::Context;
use crate::error::Result;
use crate::event::Event;
use crate::kernel::Arg;
use crate::queue::Queue;

/// Device memory behind a `cl_mem`. Its initial contents are unspecified.
pub struct RegularBuffer<T>(Object<T>);

impl<T: Pod> RegularBuffer<T> {
    /// Memory for `len` elements.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`](crate::Error::Zero), [`Error::TooLarge`](crate::Error::TooLarge), or an error from
    /// `clCreateBuffer`.
    #[doc(alias = "clCreateBuffer")]
    pub fn new(context: &Context, len: usize) -> Result<Self> {
        Self::with_access(context, len, BufferAccess::default())
    }

    /// Memory for `len` elements that OpenCL places where the host reaches it quickly
    /// (`CL_MEM_ALLOC_HOST_PTR`): on AMD's discrete GPUs pinned host memory, which the device reaches
    /// over its link (rocclr/device/rocm/rocmemory.cpp, `Buffer::create`).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    #[doc(alias = "CL_MEM_ALLOC_HOST_PTR")]
    pub fn on_host(context: &Context, len: usize) -> Result<Self> {
        let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: there is no host memory of the caller's.
        unsafe { Object::create(context, flags, len, std::ptr::null_mut()) }.map(Self)
    }

    /// Memory for `len` elements that kernels and the host may use as `access` says. Host calls that it forbids are
    /// refused, and so are launches that pass it to a parameter whose declaration (`const` or not) it forbids.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_access(context: &Context, len: usize, access: BufferAccess) -> Result<Self> {
        // SAFETY: there is no host memory.
        let object = unsafe { Object::create(context, access.flags(), len, std::ptr::null_mut()) };
        object.map(Self)
    }
}

impl<T> RegularBuffer<T> {
    /// The same memory with other elements; the caller knows that they fit.
    pub(crate) fn retype<U>(self, len: usize) -> RegularBuffer<U> {
        RegularBuffer(self.0.retype(len))
    }
}

object_methods!(RegularBuffer);
