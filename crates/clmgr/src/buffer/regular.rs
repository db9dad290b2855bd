//! A plain `cl_mem`.

use std::fmt;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use super::object::{ClMap, ClMapMut, Object};
use crate::context::Context;
use crate::error::Result;
use crate::kernel::Arg;
use crate::queue::Queue;

/// Memory of the device behind a `cl_mem`. Its first contents are unspecified.
pub struct RegularBuffer<T>(Object<T>);

impl<T: Pod> RegularBuffer<T> {
    /// Memory for `len` elements.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`](crate::Error::Zero), [`Error::TooLarge`](crate::Error::TooLarge), or what
    /// `clCreateBuffer` answers.
    #[doc(alias = "clCreateBuffer")]
    pub fn new(context: &Context, len: usize) -> Result<Self> {
        // SAFETY: there is no host memory.
        let object = unsafe {
            Object::create(
                context,
                opencl_sys::CL_MEM_READ_WRITE,
                len,
                std::ptr::null_mut(),
            )
        };
        object.map(Self)
    }
}

super::object_methods!(RegularBuffer);
