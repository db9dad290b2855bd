//! Memory that other code allocated, as shared buffers.

use std::os::fd::OwnedFd;

use bytemuck::Pod;
use clmgr::opencl_sys::cl_mem;
use clmgr::{ExternalBuffer, Needs, SvmGrain};

use super::Bridge;
use crate::access::Span;
use crate::backing::{self, AdoptedSvm, Backing, ClObject, ExternalFd, GpuVa, HipPointer, Imported};
use crate::memory::bytes_of;
use crate::{Error, Result, Route, Shared};

/// Foreign memory: a shared buffer over it orders its own users, and those of every other shared
/// buffer over the same bytes. It cannot know what the owner does by other means: that must be over before a guard is
/// taken, or come after the work on the guard's queue or stream.
impl Bridge {
    /// A buffer object of other code, in the bridge's context: by its address ([`Route::GpuVa`]), or
    /// by a copy for HIP where the [`Policy`](crate::Policy) permits one; or exactly by the `route` named, which may
    /// also be [`Route::DmaBuf`]. It is retained until the result is dropped. A part of a buffer is fine; its length is
    /// that of the object in whole elements.
    ///
    /// With a copy, HIP's writes reach the object when OpenCL next takes the buffer. Bytes that one shared buffer has
    /// by a copy are refused to every other one.
    ///
    /// # Errors
    /// [`Error::NotPossible`] with a reason per route; [`Error::OtherOwner`] for an object of
    /// another context; OpenCL's error for a handle that is no buffer. The object is then unchanged. A read-only object
    /// yields a buffer that refuses writes.
    ///
    /// # Safety
    /// * `raw` is a living memory object.
    /// * While a guard of the result, or work that received one, uses the memory, nothing else writes it; while it is
    ///   written so, nothing else uses it. Of two shared buffers over the same bytes, a write guard of one is not alive
    ///   together with a guard of the other.
    pub unsafe fn adopt_cl_mem<T: Pod>(&self, raw: cl_mem, route: Option<Route>) -> Result<Shared<T>> {
        let by_policy = [Route::GpuVa, Route::Staging];
        let routes = match &route {
            Some(route) => std::slice::from_ref(route),
            None if self.permitted.contains(&Route::Staging) => &by_policy,
            None => &by_policy[..1],
        };
        let mut tried = Vec::new();
        for &route in routes {
            // SAFETY: the caller's promise.
            match unsafe { self.cl_mem_on(raw, route) } {
                Err(error) if error.is_about_route() => tried.push((route, error.to_string())),
                done => return done,
            }
        }
        Err(Error::NotPossible { tried })
    }

    /// # Safety
    /// As [`adopt_cl_mem`](Self::adopt_cl_mem).
    unsafe fn cl_mem_on<T: Pod>(&self, raw: cl_mem, route: Route) -> Result<Shared<T>> {
        let core = &self.core;
        // SAFETY: the caller's promise.
        let info = unsafe { core.external.buffer_info(raw) }?;
        if info.context != core.context.raw() {
            return Err(Error::OtherOwner {
                what: "buffer",
                owner: "context",
            });
        }
        backing::gate(core, route)?;
        let needs = Needs {
            len: None,
            device: info.access.device,
        };
        // SAFETY: the caller's promise.
        let object = unsafe { ExternalBuffer::<u8>::wrap(&core.external, raw, needs) }?;
        // A view of shared virtual memory is not part, though some drivers name an object behind it.
        let is_part = info.is_sub_buffer() && info.uses_svm != Some(true);
        let (parent, offset, whole) = if is_part {
            // SAFETY: a part keeps its whole alive.
            let parent = unsafe { core.external.buffer_info(info.parent) }?;
            (info.parent, info.offset, parent.bytes)
        } else {
            (raw, 0, info.bytes)
        };
        let place = Span::of_object(parent, offset..offset + info.bytes);
        let object = ClObject::Foreign(object, place);
        let by_address = |object| GpuVa::over(core, object, offset, whole);
        let backing: Box<dyn Backing> = match route {
            Route::GpuVa => Box::new(by_address(object)?),
            Route::DmaBuf => {
                let original = Box::new(by_address(object)?);
                Box::new(backing::DmaBuf::over(core, original)?)
            }
            Route::Staging => Box::new(backing::Staging::over(core, object)?),
            other => return Err(not_for(other, "a buffer object of other code")),
        };
        self.share(backing, info.access.device.writes())
    }

    /// `len` elements of shared virtual memory that other code allocated in the bridge's context.
    /// `owner` is kept until the result is dropped: the value that frees the memory, or one that keeps that value
    /// alive.
    ///
    /// # Errors
    /// If the HSA runtime does not know all of the memory, or knows it elsewhere than the granularity says; if OpenCL
    /// does not recognise it as its own.
    ///
    /// # Safety
    /// * As [`adopt_cl_mem`](Self::adopt_cl_mem) about other uses.
    /// * `ptr` lies in memory from `clSVMAlloc` of this granularity, in the bridge's context, with `len` elements from
    ///   there on; it is not freed while `owner` lives.
    pub unsafe fn adopt_svm<T: Pod>(
        &self,
        ptr: *mut T,
        len: usize,
        grain: SvmGrain,
        owner: impl Send + Sync + 'static,
    ) -> Result<Shared<T>> {
        let bytes = bytes_of::<T>(len)?;
        // SAFETY: the caller's promise.
        let svm = unsafe { AdoptedSvm::new(&self.core, ptr.cast(), bytes, grain, Box::new(owner)) }?;
        self.share(Box::new(svm), true)
    }

    /// `len` elements of device memory that HIP allocated for other code, or another runtime of this process that the
    /// HSA runtime knows. For the latter, HIP's kernels take the address but its copies do not; a kernel makes the
    /// transfers from and to the host. `owner` is kept until the result is dropped: the value that frees the memory, or
    /// one that keeps that value alive.
    ///
    /// # Errors
    /// If neither runtime knows all of the memory as the bridge's device's own, or OpenCL cannot take a HIP pointer.
    ///
    /// # Safety
    /// * As [`adopt_cl_mem`](Self::adopt_cl_mem) about other uses.
    /// * The memory is not freed while `owner` lives.
    pub unsafe fn adopt_hip<T: Pod>(
        &self,
        ptr: *mut T,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> Result<Shared<T>> {
        let bytes = bytes_of::<T>(len)?;
        // SAFETY: the caller's promise.
        let memory = unsafe { HipPointer::adopted(&self.core, ptr.cast(), bytes, Box::new(owner)) }?;
        self.share(Box::new(memory), true)
    }

    /// `len` elements of device memory behind a file descriptor, from byte `offset` on: a dma-buf, or an opaque
    /// descriptor of HIP or CUDA virtual memory or of Vulkan. HIP imports it, and OpenCL kernels get the address of the
    /// import; where that means nothing to them (nvidia), OpenCL imports the descriptor too
    /// ([`Route::ExternalFd`]). The descriptor is closed; the imports keep the memory.
    ///
    /// # Errors
    /// If HIP cannot import it, or OpenCL can neither take a HIP pointer nor import it. OpenCL's
    /// import has no offset: [`Error::Unsupported`] for any offset but 0 there. Adopt all of the
    /// memory, and take a [part](Shared::part_mut).
    ///
    /// # Safety
    /// * As [`adopt_cl_mem`](Self::adopt_cl_mem) about other uses, by other processes too.
    /// * No other shared buffer has the same memory by its address: a descriptor and an address are not known to be one
    ///   memory. HIP cannot be queried: before July 2026 `hipMemRetainAllocationHandle` crashes on memory that is not
    ///   virtual and retains nothing (clr: hipamd/src/hip_vm.cpp).
    /// * The memory has at least `offset` bytes and `len` elements; where OpenCL imports it and it is
    ///   not virtual memory, exactly as many (CUDA, `cuImportExternalMemory`).
    pub unsafe fn adopt_fd<T: Pod>(&self, fd: OwnedFd, offset: usize, len: usize) -> Result<Shared<T>> {
        let bytes = bytes_of::<T>(len)?;
        let memory: Box<dyn Backing> = if backing::gate(&self.core, Route::HipPointer).is_ok() {
            // SAFETY: the caller's promise.
            Box::new(unsafe { Imported::new(&self.core, fd, offset, bytes) }?)
        } else if offset == 0 {
            // SAFETY: the caller's promise.
            Box::new(unsafe { ExternalFd::adopted(&self.core, fd, bytes) }?)
        } else {
            return Err(Error::Unsupported {
                route: Route::ExternalFd,
                reason: format!(
                    "OpenCL imports memory only from its first byte, not from byte {offset}; adopt all of it, and take a part"
                ),
            });
        };
        self.share(memory, true)
    }
}

fn not_for(route: Route, what: &str) -> Error {
    Error::Unsupported {
        route,
        reason: format!("it does not support {what}"),
    }
}
