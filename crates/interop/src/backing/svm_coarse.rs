//! Coarse-grain SVM: OpenCL allocates, HIP uses the same address.
//!
//! On ROCm such memory lies in the device's own pool and its pointer is the GPU address, which is
//! valid for both runtimes because a process has one GPU address space. OpenCL owns it, so that
//! OpenCL's in-order queues track it; HIP reaches it by kernels, rocBLAS and rocSOLVER only (HIP's
//! copy calls would treat it as host memory).

use crate::bridge::Core;
use crate::{Error, Result};
use bytemuck::Pod;
use clmgr::SvmBuffer;
use platform::{ForeignHooks, ForeignKind};

pub(crate) struct SvmCoarse<T: Pod> {
    // Dropped first: a model must forget the memory before OpenCL frees it.
    _known: Option<Known>,
    buffer: SvmBuffer<T>,
}

impl<T: Pod> SvmCoarse<T> {
    pub(crate) fn allocate(core: &Core, len: usize) -> Result<Self> {
        let buffer = SvmBuffer::coarse(&core.context, len)?;
        let known = match core.foreign {
            None => {
                refuse_unknown(core, &buffer)?;
                None
            }
            Some(hooks) => Some(Known::make(core, hooks, &buffer)?),
        };
        Ok(Self {
            _known: known,
            buffer,
        })
    }

    pub(crate) fn cl_ptr(&self) -> *const T {
        self.buffer.as_ptr()
    }

    pub(crate) fn hip_ptr(&self) -> *mut T {
        self.buffer.as_ptr()
    }

    pub(crate) fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.buffer.arg()
    }

    pub(crate) fn write(&mut self, core: &Core, data: &[T]) -> Result<()> {
        Ok(self.buffer.write(&core.queue, data)?)
    }

    pub(crate) fn read(&self, core: &Core, data: &mut [T]) -> Result<()> {
        Ok(self.buffer.read(&core.queue, data)?)
    }
}

/// Where the two APIs share no address space, as OpenCL and CUDA do not, HIP does not know the address, and a kernel that
/// followed it would break HIP's context for good. So HIP is asked before any kernel is.
fn refuse_unknown<T: Pod>(core: &Core, buffer: &SvmBuffer<T>) -> Result<()> {
    match core.hip.pointer_info(buffer.as_ptr().cast())? {
        Some(_) => Ok(()),
        None => Err(Error::Foreign {
            platform: core.platform,
            reason: "HIP does not know the address of OpenCL's shared virtual memory".into(),
        }),
    }
}

/// A model of a device knows this memory for as long as this lives.
struct Known {
    hooks: ForeignHooks,
    address: usize,
}

impl Known {
    fn make<T: Pod>(core: &Core, hooks: ForeignHooks, buffer: &SvmBuffer<T>) -> Result<Self> {
        let ptr = buffer.as_ptr();
        // SAFETY: the range is the buffer's, which outlives this value.
        unsafe { (hooks.adopt)(ptr.cast(), buffer.bytes(), ForeignKind::Vram) }.map_err(
            |reason| Error::Foreign {
                platform: core.platform,
                reason,
            },
        )?;
        Ok(Self {
            hooks,
            address: ptr.expose_provenance(),
        })
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // The only failure is an address that was never made known, and this one was.
        let _ = (self.hooks.release)(std::ptr::with_exposed_provenance_mut(self.address));
    }
}
