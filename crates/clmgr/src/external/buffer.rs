//! A buffer that someone else created.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use super::contexts::ExternalContexts;
use super::info::ExternalBufferInfo;
use crate::access::{Access, BufferAccess};
use crate::api::slot;
use crate::buffer::{
    BoxLayout, ClMap, ClMapMut, MemRef, Object, Pending, SubBuffer, SubBufferMut, SvmBuffer, object_methods,
};
use crate::context::Context;
use crate::error::{Error, Result, check};
use crate::event::Event;
use crate::kernel::Arg;
use crate::queue::Queue;

/// What a foreign buffer must offer to be adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Needs {
    /// The number of elements it must have; `None` for any.
    pub len: Option<usize>,
    /// What kernels must be allowed to do.
    pub device: Access,
}

/// A foreign buffer of `T`, retained until this value is dropped.
pub struct ExternalBuffer<T>(Object<T>);

impl<T: Pod> ExternalBuffer<T> {
    /// Adopts the buffer, which its owner may keep using.
    ///
    /// # Errors
    ///
    /// As [`ExternalBufferInfo::query`]; [`Error::Remainder`] or [`Error::LengthMismatch`] if it
    /// does not hold that many elements, [`Error::Access`] if its flags do not allow what is needed. The buffer is then
    /// unchanged.
    ///
    /// # Safety
    ///
    /// * As [`ExternalBufferInfo::query`].
    /// * Memory that the owner supplied (`CL_MEM_USE_HOST_PTR`) stays valid for as long as this
    ///   value lives and until the commands that use it have ended.
    /// * While a method of this value or one of its guards uses the memory, nothing else writes it or
    ///   maps it for writing, be it the owner or a second value over the same buffer; and nothing else touches it at
    ///   all while this value is borrowed exclusively.
    pub unsafe fn wrap(contexts: &ExternalContexts, raw: cl_mem, needs: Needs) -> Result<Self> {
        // SAFETY: the caller's promise.
        let info = unsafe { ExternalBufferInfo::query(contexts, raw) }?;
        let len = info.len::<T>()?;
        if let Some(expected) = needs.len
            && expected != len
        {
            return Err(Error::LengthMismatch {
                what: "adopting a foreign buffer",
                expected,
                got: len,
            });
        }
        let has = info.access.device;
        if (needs.device.reads() && !has.reads()) || (needs.device.writes() && !has.writes()) {
            return Err(Error::Access {
                what: format!("adopting a foreign buffer for {} use", needs.device),
                access: info.access,
            });
        }
        // SAFETY: the context of a live buffer lives.
        let context = unsafe { contexts.context(info.context) }?;
        slot!(context.api(), clReleaseMemObject)?;
        let retain = slot!(context.api(), clRetainMemObject)?;
        // SAFETY: the caller's promise.
        check(unsafe { retain(raw) }, || "clRetainMemObject".to_owned())?;
        // SAFETY: the reference is the one just taken, and the size is that of the elements.
        let object = unsafe { Object::own(&context, raw, info.access, len, Arc::default(), Arc::default()) };
        Ok(Self(object))
    }

    /// Enqueues a copy of `count` elements of shared virtual memory from `from` on, to `to` in this buffer, without
    /// going through the host; see [`SvmBuffer::copy_into`].
    ///
    /// # Errors
    ///
    /// As [`SvmBuffer::copy_into`].
    pub fn write_from(
        &mut self,
        queue: &Queue,
        to: usize,
        source: &SvmBuffer<T>,
        from: usize,
        count: usize,
    ) -> Result<Event> {
        source.copy_into(queue, from, self, to, count)
    }

    /// Enqueues a copy of `count` elements from `from` on to `to` in shared virtual memory, without going through the
    /// host; see [`SvmBuffer::copy_from`].
    ///
    /// # Errors
    ///
    /// As [`SvmBuffer::copy_from`].
    pub fn read_to(
        &self,
        queue: &Queue,
        from: usize,
        target: &mut SvmBuffer<T>,
        to: usize,
        count: usize,
    ) -> Result<Event> {
        target.copy_from(queue, to, self, from, count)
    }
}

object_methods!(ExternalBuffer);
