//! Shared virtual memory.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | [`SvmBuffer`], and [`SvmView`], a `cl_mem` over it |
//! | `memory.rs` | the allocation under it, and its release |
//! | `copy.rs` | reads, writes, fills and copies |
//! | `map.rs` | the guards of maps |

mod copy;
mod map;
mod memory;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
pub use map::{SvmMap, SvmMapMut};
use memory::Allocation;
pub use memory::SvmGrain;
use opencl_sys::cl_mem;

use super::object::{MemRef, Object};
use crate::context::Context;
use crate::error::{Error, Result, bytes_of};
use crate::kernel::Arg;
use crate::queue::Queue;

/// The alignment that `clSVMAlloc` uses when the caller passes none: that of the largest OpenCL
/// type.
const DEFAULT_ALIGNMENT: usize = 128;

/// Memory at the same address for host and device: from `clSVMAlloc` with unspecified initial
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
    /// [`Error::NotSupported`] if the device has no SVM, or returned memory that is misaligned for
    /// the elements; [`Error::Zero`], [`Error::TooLarge`], or an error if `clSVMAlloc` returned no
    /// memory.
    #[doc(alias = "clSVMAlloc")]
    pub fn coarse(context: &Context, len: usize) -> Result<Self> {
        Self::new(context, len, SvmGrain::Coarse)
    }

    /// Fine-grained memory for `len` elements. On a discrete GPU it is in host memory, which the device reaches over
    /// the bus.
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
    /// As [`coarse`](Self::coarse), or the host's allocator returned no memory.
    #[doc(alias = "CL_DEVICE_SVM_FINE_GRAIN_SYSTEM")]
    pub fn system(context: &Context, len: usize) -> Result<Self> {
        Self::new(context, len, SvmGrain::System)
    }

    /// Memory of this granularity for `len` elements.
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
        let buffer = Self {
            allocation: Arc::new(Allocation::new(context, bytes, grain)?),
            len,
            element: PhantomData,
        };
        buffer.check_alignment()?;
        Ok(buffer)
    }

    /// Checks that the memory suits the elements. Drivers have returned less alignment than OpenCL
    /// guarantees, and a pool's memory was allocated for other elements.
    fn check_alignment(&self) -> Result<()> {
        if self.as_ptr().is_aligned() {
            return Ok(());
        }
        Err(Error::NotSupported {
            what: format!(
                "shared virtual memory for elements aligned to {} bytes",
                align_of::<T>()
            ),
            device: self.context().device().name().to_owned(),
            reason: format!(
                "`clSVMAlloc` returned memory at {:p}; use a regular buffer",
                self.as_ptr()
            ),
        })
    }

    /// Makes the memory readable for the host, after all enqueued work that uses it: by a map for
    /// coarse memory, a wait for the others. The end of the map is ordered by `queue`.
    ///
    /// # Errors
    ///
    /// The error from `clEnqueueSVMMap` or `clFinish`; [`Error::NotSupported`] if the memory of a
    /// [pool](crate::MemoryPool) is misaligned for the elements.
    #[doc(alias = "clEnqueueSVMMap")]
    pub fn map(&self, queue: &Queue) -> Result<SvmMap<'_, T>> {
        self.check_alignment()?;
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
        self.check_alignment()?;
        let flags = opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE;
        self.allocation.map(queue, flags, true)?;
        Ok(SvmMapMut {
            buffer: self,
            queue: queue.clone(),
        })
    }

    /// The same memory as a buffer object, for code that takes a `cl_mem`. It borrows the buffer as
    /// a reader does:
    ///
    /// ```compile_fail,E0502
    /// # fn torn(mut buffer: clmgr::SvmBuffer<u32>, queue: &clmgr::Queue) -> clmgr::Result<()> {
    /// let view = buffer.view()?;
    /// let mut map = buffer.map_mut(queue)?;
    /// map[0] = view.len() as u32;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # fn overlapping(mut buffer: clmgr::SvmBuffer<u32>, queue: &clmgr::Queue) -> clmgr::Result<()> {
    /// let view = buffer.view()?;
    /// buffer.copy_from(queue, 1, &view, 0, 10)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] for the host's own memory, which a buffer object may copy; an error
    /// from `clCreateBuffer`, or `clEnqueueSVMUnmap` for a map whose guard was leaked.
    pub fn view(&self) -> Result<SvmView<'_, T>> {
        // SAFETY: the view borrows the buffer for as long as it lives.
        unsafe { self.unbound_view() }
    }

    /// Like [`view`](Self::view), for owners that keep the view beside the buffer. The memory lives
    /// as long as the buffer or the view does.
    ///
    /// # Safety
    ///
    /// The view is not the source of a copy while the buffer is mutably borrowed or mapped for
    /// writing, nor while work enqueued then is still running. Kernels that take it are subject to
    /// [`Kernel::launch`](crate::Kernel::launch).
    pub unsafe fn unbound_view<'a>(&self) -> Result<SvmView<'a, T>> {
        let allocation = &self.allocation;
        if allocation.grain == SvmGrain::System {
            return Err(Error::NotSupported {
                what: "a buffer object over system-grained shared virtual memory".to_owned(),
                device: allocation.context.device().name().to_owned(),
                reason: "OpenCL guarantees shared storage only for memory of `clSVMAlloc`; pass the pointer, or use coarse-grained or fine-grained memory".to_owned(),
            });
        }
        // The view knows nothing of the allocation's maps. None for writing can begin while it is borrowed, so one that
        // is left was leaked.
        allocation.undo_leaked(false)?;
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
            buffer: PhantomData,
        })
    }

    /// Records that a command that uses the memory was enqueued on `queue` through raw handles, so
    /// that a read on another queue, or the buffer's drop, waits for it.
    pub fn note_use(&self, queue: &Queue) {
        self.allocation.note_use(queue);
    }

    /// Waits until nothing enqueued on any queue uses the memory.
    ///
    /// # Errors
    ///
    /// An error from `clFinish`.
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

    pub(crate) fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Whether neither a view nor anything else holds the memory.
    pub(crate) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.allocation) == 1
    }

    /// The same memory with other elements; the caller knows that they fit.
    pub(crate) fn retype<U>(self, len: usize) -> SvmBuffer<U> {
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

/// A buffer object over the memory of an [`SvmBuffer`], which it borrows.
pub struct SvmView<'a, T> {
    // Declared first, so the object is released before its memory.
    pub(super) object: Object<T>,
    _allocation: Arc<Allocation>,
    buffer: PhantomData<&'a SvmBuffer<T>>,
}

impl<T> SvmView<'_, T> {
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

impl<'a, T> From<&'a SvmView<'_, T>> for MemRef<'a, T> {
    fn from(view: &'a SvmView<'_, T>) -> Self {
        Self(&view.object)
    }
}

impl<T> fmt::Debug for SvmView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SvmView")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
