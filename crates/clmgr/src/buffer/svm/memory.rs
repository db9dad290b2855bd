//! The memory under a [`SvmBuffer`](super::SvmBuffer): where it comes from, its maps and its end.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use opencl_sys::cl_svm_mem_flags;
use parking_lot::Mutex;

use crate::api::slot;
use crate::buffer::mapped::{Mapped, Maps};
use crate::buffer::pages::Pages;
use crate::context::Context;
use crate::device::{Device, SvmCapabilities};
use crate::error::{Error, Result, check, check_taken, still_running};
use crate::handle::Handle;
use crate::queue::Queue;
use crate::usage::Usage;

/// Keeps calls of `clSVMAlloc` and `clSVMFree` apart: on NVIDIA's driver 580 a third of those that
/// several threads make at once fail.
static ALLOCATOR: Mutex<()> = Mutex::new(());

/// How finely host and device share the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SvmGrain {
    /// The host reaches it only while it is mapped.
    Coarse,
    /// Host and device reach it without a map, though not both at once.
    Fine,
    /// As fine, but ordinary host memory, which the device reaches like its own.
    System,
}

impl SvmGrain {
    /// What the device must report.
    fn needs(self) -> SvmCapabilities {
        match self {
            Self::Coarse => SvmCapabilities::COARSE,
            Self::Fine => SvmCapabilities::FINE_BUFFER,
            Self::System => SvmCapabilities::FINE_SYSTEM,
        }
    }

    /// Whether the device has such memory.
    pub(crate) fn is_offered(self, device: &Device) -> bool {
        device.svm().contains(self.needs())
    }

    /// That the device has such memory.
    fn require(self, device: &Device) -> Result<()> {
        if self.is_offered(device) {
            return Ok(());
        }
        Err(Error::NotSupported {
            what: format!("{self}-grained shared virtual memory"),
            device: device.name().to_owned(),
            reason: format!("the device reports {:?}; use a regular buffer", device.svm()),
        })
    }
}

impl fmt::Display for SvmGrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coarse => "coarse",
            Self::Fine => "fine",
            Self::System => "system",
        })
    }
}

pub(crate) struct Allocation {
    pub start: Handle,
    pub bytes: usize,
    pub grain: SvmGrain,
    pub context: Context,
    pub usage: Arc<Usage>,
    maps: Maps,
    /// The memory itself if it is the host's own; else it is from `clSVMAlloc`.
    pages: Option<Pages>,
}

impl Allocation {
    pub fn new(context: &Context, bytes: usize, grain: SvmGrain) -> Result<Self> {
        grain.require(context.device())?;
        let pages = match grain {
            SvmGrain::System => Some(Pages::new(bytes)?),
            SvmGrain::Coarse | SvmGrain::Fine => None,
        };
        let start = match &pages {
            Some(pages) => pages.as_ptr(),
            None => svm_alloc(context, bytes, grain)?,
        };
        let allocation = Self {
            start: Handle(start),
            bytes,
            grain,
            context: context.clone(),
            usage: Arc::default(),
            maps: Maps::default(),
            pages,
        };
        context.registry().add_range(allocation.start, bytes, &allocation.usage);
        Ok(allocation)
    }

    /// Undoes leaked maps and waits for what other queues still do with the memory.
    pub fn settle(&self, queue: &Queue, exclusive: bool) -> Result<()> {
        if queue.context() != &self.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        self.undo_leaked(exclusive)?;
        self.usage.wait_except(queue)
    }

    /// Undoes leaked maps, each by its own queue.
    pub fn undo_leaked(&self, exclusive: bool) -> Result<()> {
        self.maps.undo_leaked(exclusive, |map| self.unmap(&map.queue))
    }

    pub fn map(&self, queue: &Queue, flags: u64, writes: bool) -> Result<()> {
        self.settle(queue, writes)?;
        if self.grain != SvmGrain::Coarse {
            self.usage.wait()?;
            return still_running();
        }
        let map = slot!(self.context.api(), clEnqueueSVMMap)?;
        let before = queue.enqueued();
        // SAFETY: the range is the whole allocation, which is alive; the queue is of its context;
        // the call blocks.
        let code = unsafe {
            map(
                queue.raw(),
                opencl_sys::CL_TRUE,
                flags,
                self.start.0,
                self.bytes,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clEnqueueSVMMap({} bytes)", self.bytes))?;
        queue.mark_ended(before);
        self.maps.add(self.mapped(queue, writes));
        Ok(())
    }

    /// Ends the map of a guard.
    pub fn end_map(&self, queue: &Queue, writes: bool) -> Result<()> {
        if self.grain != SvmGrain::Coarse {
            return Ok(());
        }
        self.maps.end(self.mapped(queue, writes), |map| self.unmap(&map.queue))
    }

    fn mapped(&self, queue: &Queue, writes: bool) -> Mapped {
        Mapped {
            queue: queue.clone(),
            object: self.start,
            pointer: self.start,
            writes,
        }
    }

    /// Undoes every map, since no guard of one is alive; the queues keep what fails. Returns
    /// whether none is left.
    pub fn unmap_in_drop(&self) -> bool {
        self.maps.undo_in_drop(|map| self.unmap(&map.queue))
    }

    fn unmap(&self, queue: &Queue) -> Result<()> {
        let unmap = slot!(self.context.api(), clEnqueueSVMUnmap)?;
        // SAFETY: the memory was mapped at this address and is not unmapped yet.
        let code = unsafe { unmap(queue.raw(), self.start.0, 0, std::ptr::null(), std::ptr::null_mut()) };
        check_taken(code, || "clEnqueueSVMUnmap".to_owned())?;
        self.note_use(queue);
        Ok(())
    }

    pub fn note_use(&self, queue: &Queue) {
        self.usage.note(queue, queue.note_enqueued());
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.context.registry().remove_range(self.start);
        let unmapped = self.unmap_in_drop();
        // If a wait fails, the device may still use the memory: then it is never freed.
        let unused = self.usage.wait_in_drop() && unmapped;
        match (self.pages.take(), unused) {
            (pages, false) => std::mem::forget(pages),
            (Some(pages), true) => drop(pages),
            (None, true) => {
                if let Some(free) = self.context.api().clSVMFree {
                    let _one_at_a_time = ALLOCATOR.lock();
                    // SAFETY: the memory is from `clSVMAlloc` of this context, and the commands
                    // that use it have ended.
                    unsafe { free(self.context.raw(), self.start.0) };
                }
            }
        }
    }
}

/// Memory of the driver.
fn svm_alloc(context: &Context, bytes: usize, grain: SvmGrain) -> Result<*mut c_void> {
    let limit = context.device().max_alloc_bytes();
    if bytes as u64 > limit {
        return Err(Error::TooLarge {
            what: "the size of a buffer",
            got: format!("{bytes} bytes"),
            limit,
        });
    }
    slot!(context.api(), clSVMFree)?;
    let alloc = slot!(context.api(), clSVMAlloc)?;
    let fine: cl_svm_mem_flags = match grain {
        SvmGrain::Fine => opencl_sys::CL_MEM_SVM_FINE_GRAIN_BUFFER,
        SvmGrain::Coarse | SvmGrain::System => 0,
    };
    let flags = opencl_sys::CL_MEM_READ_WRITE | fine;
    let start = {
        let _one_at_a_time = ALLOCATOR.lock();
        // SAFETY: the context is alive; alignment zero means that of the largest OpenCL type.
        unsafe { alloc(context.raw(), flags, bytes, 0) }
    };
    if start.is_null() {
        // The call has no code of its own: null is its only error.
        return Err(Error::Call {
            call: format!("clSVMAlloc({bytes} bytes, {grain})"),
            code: opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE,
        });
    }
    Ok(start)
}
