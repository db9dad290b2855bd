//! Shared virtual memory: OpenCL allocates, HIP uses the same address.
//!
//! On ROCm coarse memory lies in the device's own pool and its pointer is the GPU address, which is
//! valid for both runtimes because a process has one GPU address space. OpenCL owns it, so that
//! OpenCL's in-order queues track it; HIP reaches it by kernels, rocBLAS and rocSOLVER only (HIP's
//! copy calls would treat it as host memory). Fine memory is the host's on a discrete GPU, mapped
//! to the device (rocclr/device/rocm/rocmemory.cpp, `Buffer::create`).

use std::sync::Arc;

use clmgr::{SvmBuffer, SvmView};
use parking_lot::Mutex;
use platform::ForeignKind;

use super::{Backing, Outgoing, PeerAccess, check_place};
use crate::core::{Core, Known};
use crate::values::Carrier;
use crate::{Result, Route};

pub(crate) struct Svm {
    // Dropped first: a model must forget the memory before OpenCL frees it.
    _known: Option<Known>,
    /// Made on demand.
    view: Mutex<Option<Arc<SvmView<'static, u8>>>>,
    buffer: SvmBuffer<u8>,
    route: Route,
}

impl Svm {
    pub(crate) fn coarse(core: &Core, bytes: usize) -> Result<Self> {
        let buffer = SvmBuffer::coarse(&core.context, bytes)?;
        let svm = Self::new(core, buffer, ForeignKind::Vram, Route::SvmCoarse)?;
        check_place(core, Route::SvmCoarse, svm.hip_ptr(), bytes)?;
        Ok(svm)
    }

    pub(crate) fn fine(core: &Core, bytes: usize) -> Result<Self> {
        let buffer = SvmBuffer::fine(&core.context, bytes)?;
        Self::new(core, buffer, ForeignKind::HostFine, Route::SvmFine)
    }

    fn new(core: &Core, buffer: SvmBuffer<u8>, kind: ForeignKind, route: Route) -> Result<Self> {
        // SAFETY: the range is the buffer's, which is dropped after the result.
        let known = unsafe { Known::make(core, buffer.as_ptr().cast(), buffer.bytes(), kind) }?;
        Ok(Self {
            _known: known,
            view: Mutex::default(),
            buffer,
            route,
        })
    }
}

impl Backing for Svm {
    fn route(&self) -> Route {
        self.route
    }

    fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        self.buffer.as_ptr()
    }

    fn is_known_to_hip(&self) -> bool {
        false
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.buffer.arg()
    }

    /// `CL_MEM_USE_HOST_PTR` over shared virtual memory is a view of it, in place
    /// (opencl/amdocl/cl_memobj.cpp, `clCreateBuffer`).
    fn mem_arg(&self) -> Result<clmgr::Arg<'_>> {
        let mut view = self.view.lock();
        let view = match &*view {
            Some(view) => view,
            // SAFETY: only kernels receive the view.
            None => view.insert(Arc::new(unsafe { self.buffer.unbound_view() }?)),
        };
        // It stays until this backing is dropped.
        Ok(clmgr::Arg::Mem(view.raw()))
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.buffer.as_ptr().addr())
    }

    /// Fine memory is mapped to every GPU (rocclr/device/rocm/rocdevice.cpp, `hostAlloc`).
    fn peer_access(&self) -> PeerAccess<'_> {
        match self.route {
            Route::SvmFine => PeerAccess::Enabled,
            _ => PeerAccess::Granted,
        }
    }

    fn outgoing(&self, core: &Core, carrier: Carrier) -> Result<Outgoing> {
        match carrier {
            Carrier::DmaBuf => Outgoing::dma_buf(core, self.hip_ptr(), self.bytes()),
            _ => Err(super::outgoing::refused(
                carrier,
                "the memory belongs to OpenCL, and HIP cannot share it".into(),
            )),
        }
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        Ok(self.buffer.write_at(&core.queue, begin, data)?)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        Ok(self.buffer.read_at(&core.queue, begin, data)?)
    }
}
