//! Shared virtual memory.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use opencl_sys::{cl_mem, cl_svm_mem_flags};
use parking_lot::Mutex;

use super::map::{Mapped, Maps};
use super::object::Object;
use super::svm_map::{SvmMap, SvmMapMut};
use super::transfer::MemRef;
use crate::api::slot;
use crate::context::Context;
use crate::device::SvmCapabilities;
use crate::error::{Error, Result, bytes_of, check};
use crate::handle::Handle;
use crate::kernel::Arg;
use crate::queue::Queue;
use crate::usage::Usage;

/// The alignment that `clSVMAlloc` gives when asked for none: that of OpenCL's largest type.
const DEFAULT_ALIGNMENT: usize = 128;

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
}

impl fmt::Display for SvmGrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Coarse => "coarse",
            Self::Fine => "fine",
        })
    }
}

/// Memory from `clSVMAlloc`, at the same address for host and device. Its first contents are
/// unspecified.
///
/// On a discrete GPU coarse memory is the device's own, and fine memory is the host's.
pub struct SvmBuffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<T>,
}

pub(super) struct Allocation {
    pub start: Handle,
    pub bytes: usize,
    grain: SvmGrain,
    pub context: Context,
    pub usage: Arc<Usage>,
    maps: Maps,
}

impl<T: Pod> SvmBuffer<T> {
    /// Coarse-grained memory for `len` elements.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where the device has none; [`Error::Zero`], [`Error::TooLarge`], or
    /// that `clSVMAlloc` gave no memory.
    #[doc(alias = "clSVMAlloc")]
    pub fn coarse(context: &Context, len: usize) -> Result<Self> {
        Self::new(context, len, SvmGrain::Coarse)
    }

    /// Fine-grained memory for `len` elements. On a discrete GPU it lies in host memory, which the
    /// device reaches over the bus.
    ///
    /// # Errors
    ///
    /// As [`coarse`](Self::coarse).
    pub fn fine(context: &Context, len: usize) -> Result<Self> {
        Self::new(context, len, SvmGrain::Fine)
    }

    /// Memory of this grain for `len` elements.
    ///
    /// # Errors
    ///
    /// As [`coarse`](Self::coarse).
    pub fn new(context: &Context, len: usize, grain: SvmGrain) -> Result<Self> {
        if align_of::<T>() > DEFAULT_ALIGNMENT {
            return Err(Error::TooLarge {
                what: "the alignment of an element in shared virtual memory",
                got: format!("{} bytes", align_of::<T>()),
                limit: DEFAULT_ALIGNMENT as u64,
            });
        }
        let bytes = bytes_of::<T>("the length of a buffer", len)?;
        Ok(Self {
            allocation: Arc::new(Allocation::new(context, bytes, grain)?),
            len,
            element: PhantomData,
        })
    }

    /// Makes the memory readable for the host, after everything enqueued that uses it: a map of
    /// coarse memory, a wait for fine memory. The end of the map is ordered by `queue`.
    ///
    /// # Errors
    ///
    /// What `clEnqueueSVMMap` or `clFinish` answers.
    #[doc(alias = "clEnqueueSVMMap")]
    pub fn map(&self, queue: &Queue) -> Result<SvmMap<'_, T>> {
        self.allocation.map(queue, opencl_sys::CL_MAP_READ, false)?;
        Ok(SvmMap {
            buffer: self,
            queue: queue.clone(),
        })
    }

    /// Makes the memory readable and writable for the host, as [`map`](Self::map).
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map).
    pub fn map_mut(&mut self, queue: &Queue) -> Result<SvmMapMut<'_, T>> {
        let flags = opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE;
        self.allocation.map(queue, flags, true)?;
        Ok(SvmMapMut {
            buffer: self,
            queue: queue.clone(),
        })
    }

    /// The same memory as a buffer object, for code that takes a `cl_mem`. The memory lives for as
    /// long as the buffer or a view of it does.
    ///
    /// # Errors
    ///
    /// What `clCreateBuffer` answers.
    pub fn view(&self) -> Result<SvmView<T>> {
        let allocation = &self.allocation;
        let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
        // SAFETY: the pointer is the start of `bytes` bytes of shared virtual memory, which
        // `CL_MEM_USE_HOST_PTR` takes as they are. The view keeps the allocation, whose drop waits
        // for the commands of the view too, since both note them in one place.
        let object = unsafe {
            Object::create_with(
                &allocation.context,
                flags,
                self.len,
                allocation.bytes,
                allocation.start.0,
                allocation.usage.clone(),
            )
        }?;
        Ok(SvmView {
            object,
            _allocation: allocation.clone(),
        })
    }

    /// Notes that a command which uses the memory was enqueued on `queue` through raw handles, so
    /// that a read on another queue, or the buffer's drop, waits for it.
    pub fn note_use(&self, queue: &Queue) {
        self.allocation.note_use(queue);
    }

    /// Waits until nothing enqueued on any queue uses the memory.
    ///
    /// # Errors
    ///
    /// What `clFinish` answers.
    pub fn wait_unused(&self) -> Result<()> {
        self.allocation.usage.wait()
    }
}

impl<T> SvmBuffer<T> {
    /// The number of elements; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.allocation.bytes
    }

    /// Coarse or fine.
    #[must_use]
    pub fn grain(&self) -> SvmGrain {
        self.allocation.grain
    }

    /// The address, for host and device. The host may use it only as the grain allows.
    #[must_use]
    pub fn as_ptr(&self) -> *mut T {
        self.allocation.start.0.cast()
    }

    /// The memory as a kernel's argument.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        Arg::Svm(self.allocation.start.0)
    }

    /// The buffer's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.allocation.context
    }

    pub(super) fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Whether neither a view nor anything else holds the memory.
    pub(super) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.allocation) == 1
    }

    /// The same memory with other elements; the caller knows that they fit.
    pub(super) fn retype<U>(self, len: usize) -> SvmBuffer<U> {
        SvmBuffer {
            allocation: self.allocation,
            len,
            element: PhantomData,
        }
    }
}

impl<T> fmt::Debug for SvmBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SvmBuffer")
            .field("len", &self.len)
            .field("grain", &self.allocation.grain)
            .field("start", &self.allocation.start.0)
            .finish()
    }
}

impl Allocation {
    fn new(context: &Context, bytes: usize, grain: SvmGrain) -> Result<Self> {
        let device = context.device();
        let (needed, flags): (_, cl_svm_mem_flags) = match grain {
            SvmGrain::Coarse => (SvmCapabilities::COARSE, opencl_sys::CL_MEM_READ_WRITE),
            SvmGrain::Fine => (
                SvmCapabilities::FINE_BUFFER,
                opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_SVM_FINE_GRAIN_BUFFER,
            ),
        };
        if !device.svm().contains(needed) {
            return Err(Error::NotSupported {
                what: format!("{grain}-grained shared virtual memory"),
                device: device.name().to_owned(),
                reason: format!("it reports {:?}; use a regular buffer", device.svm()),
            });
        }
        let limit = device.max_alloc_bytes();
        if bytes as u64 > limit {
            return Err(Error::TooLarge {
                what: "the size of a buffer",
                got: format!("{bytes} bytes"),
                limit,
            });
        }
        slot!(context.api(), clSVMFree)?;
        let alloc = slot!(context.api(), clSVMAlloc)?;
        let start = {
            let _one_at_a_time = ALLOCATOR.lock();
            // SAFETY: the context is alive; alignment zero means that of OpenCL's largest type.
            unsafe { alloc(context.raw(), flags, bytes, 0) }
        };
        if start.is_null() {
            // The call has no code of its own: null is its only error.
            return Err(Error::Call {
                call: format!("clSVMAlloc({bytes} bytes, {grain})"),
                code: opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE,
            });
        }
        let allocation = Self {
            start: Handle(start),
            bytes,
            grain,
            context: context.clone(),
            usage: Arc::default(),
            maps: Maps::default(),
        };
        context
            .registry()
            .add_range(allocation.start, bytes, &allocation.usage);
        Ok(allocation)
    }

    /// Undoes leaked maps and waits for what other queues still do with the memory.
    pub fn settle(&self, queue: &Queue, exclusive: bool) -> Result<()> {
        if queue.context() != &self.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        for map in self.maps.take_leaked(exclusive) {
            self.unmap(&map.queue)?;
        }
        self.usage.wait_except(queue)
    }

    fn map(&self, queue: &Queue, flags: u64, writes: bool) -> Result<()> {
        self.settle(queue, writes)?;
        if self.grain == SvmGrain::Fine {
            return self.usage.wait();
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
        self.maps.add(Mapped {
            queue: queue.clone(),
            object: self.start,
            pointer: self.start,
            writes,
        });
        Ok(())
    }

    /// Ends the map of a guard.
    pub fn end_map(&self, queue: &Queue, writes: bool) -> Result<()> {
        if self.grain == SvmGrain::Fine {
            return Ok(());
        }
        self.maps.remove(self.start, writes);
        self.unmap(queue)
    }

    /// Undoes every map, since no guard of one is alive.
    pub fn unmap_all(&self) -> Result<()> {
        self.maps
            .take_leaked(true)
            .iter()
            .try_for_each(|map| self.unmap(&map.queue))
    }

    fn unmap(&self, queue: &Queue) -> Result<()> {
        let unmap = slot!(self.context.api(), clEnqueueSVMUnmap)?;
        // SAFETY: the memory was mapped at this address and is not unmapped yet.
        let code = unsafe {
            unmap(
                queue.raw(),
                self.start.0,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clEnqueueSVMUnmap".to_owned())?;
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
        let unmapped = self.unmap_all();
        // If a wait fails, the device may still use the memory: then it is never freed.
        if unmapped.and_then(|()| self.usage.wait()).is_err() {
            return;
        }
        if let Some(free) = self.context.api().clSVMFree {
            let _one_at_a_time = ALLOCATOR.lock();
            // SAFETY: the memory is from `clSVMAlloc` of this context, and the commands that use it
            // have ended.
            unsafe { free(self.context.raw(), self.start.0) };
        }
    }
}

/// A buffer object over the memory of an [`SvmBuffer`].
pub struct SvmView<T> {
    // Declared first, so that the object is released before its memory.
    pub(super) object: Object<T>,
    _allocation: Arc<Allocation>,
}

impl<T> SvmView<T> {
    /// The number of elements; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.object.len()
    }

    /// The view as a kernel's argument.
    #[must_use]
    pub fn arg(&self) -> Arg<'_> {
        Arg::Mem(self.raw())
    }

    /// The view's handle, valid for as long as the view lives.
    #[must_use]
    pub fn raw(&self) -> cl_mem {
        self.object.raw()
    }
}

impl<'a, T> From<&'a SvmView<T>> for MemRef<'a, T> {
    fn from(view: &'a SvmView<T>) -> Self {
        Self(&view.object)
    }
}

impl<T> fmt::Debug for SvmView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SvmView")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
