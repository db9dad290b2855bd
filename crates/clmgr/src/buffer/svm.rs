//! Shared virtual memory.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use opencl_sys::cl_mem;

use super::object::Object;
use super::svm_map::{SvmMap, SvmMapMut};
use super::svm_memory::{Allocation, SvmGrain};
use super::transfer::MemRef;
use crate::context::Context;
use crate::error::{Error, Result, bytes_of};
use crate::kernel::Arg;
use crate::queue::Queue;

/// The alignment that `clSVMAlloc` gives when asked for none: that of OpenCL's largest type.
const DEFAULT_ALIGNMENT: usize = 128;

/// Memory at the same address for host and device: from `clSVMAlloc` with unspecified first
/// contents, or [the host's own](Self::system), zeroed.
///
/// On a discrete GPU coarse memory is the device's own, and fine memory is the host's.
pub struct SvmBuffer<T> {
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<T>,
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

    /// Zeroed, page-aligned memory of the host for `len` elements, on a device that reaches all of
    /// the host's memory. There is no [`view`](Self::view) of it.
    ///
    /// # Errors
    ///
    /// As [`coarse`](Self::coarse), or that the host's allocator gave no memory.
    #[doc(alias = "CL_DEVICE_SVM_FINE_GRAIN_SYSTEM")]
    pub fn system(context: &Context, len: usize) -> Result<Self> {
        Self::new(context, len, SvmGrain::System)
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
    /// coarse memory, a wait for the others. The end of the map is ordered by `queue`.
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
    /// [`Error::NotSupported`] for the host's own memory, which a buffer object may copy; what
    /// `clCreateBuffer` answers.
    pub fn view(&self) -> Result<SvmView<T>> {
        let allocation = &self.allocation;
        if allocation.grain == SvmGrain::System {
            return Err(Error::NotSupported {
                what: "a buffer object over system-grained shared virtual memory".to_owned(),
                device: allocation.context.device().name().to_owned(),
                reason: "OpenCL promises one storage for memory of `clSVMAlloc` alone; pass the pointer, or use coarse or fine memory".to_owned(),
            });
        }
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

    /// How finely host and device share it.
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
