//! Host memory used by the device in place.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Range;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use super::object::{BoxLayout, ClMap, ClMapMut, MemRef, Object, SubBuffer, SubBufferMut, object_methods};
use super::pages::Pages;
use super::pending::Pending;
use crate::access::BufferAccess;
use crate::context::Context;
use crate::error::{Result, bytes_of};
use crate::event::Event;
use crate::kernel::Arg;
use crate::queue::Queue;

/// Zeroed, page-aligned host memory, passed to OpenCL by `CL_MEM_USE_HOST_PTR`.
///
/// The memory is freed after the last command that uses it. A driver may keep a copy of such memory
/// instead of using it in place, and the host sees the device's writes only through a map.
pub struct HostPtrBuffer<T> {
    object: ManuallyDrop<Object<T>>,
    pages: ManuallyDrop<Pages>,
}

impl<T: Pod> HostPtrBuffer<T> {
    /// Memory for `len` elements, all bytes zero.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`](crate::Error::Zero), [`Error::TooLarge`](crate::Error::TooLarge), or an error from
    /// `clCreateBuffer`.
    pub fn new(context: &Context, len: usize) -> Result<Self> {
        let bytes = bytes_of::<T>("the length of a buffer", len)?;
        let pages = Pages::new(bytes)?;
        let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
        // SAFETY: the pages hold at least `bytes` bytes, and the drop frees them only after every
        // command that uses the object.
        let object = unsafe { Object::create(context, flags, len, pages.as_ptr()) }?;
        Ok(Self {
            object: ManuallyDrop::new(object),
            pages: ManuallyDrop::new(pages),
        })
    }

    /// The address of the memory, aligned to a page. Between a map and its end it belongs to the map.
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.pages.as_ptr().cast()
    }

    /// The size of the pages that hold the buffer, in bytes.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.pages.bytes()
    }
}

object_methods!(HostPtrBuffer, object);

impl<T> Drop for HostPtrBuffer<T> {
    fn drop(&mut self) {
        let unused = self.object.quiesce_in_drop();
        // SAFETY: the object is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.object) };
        // If the wait failed, the device may still use the memory: then it is never freed.
        if unused {
            // SAFETY: no command uses the pages any more, and they are not used after this.
            unsafe { ManuallyDrop::drop(&mut self.pages) };
        }
    }
}
