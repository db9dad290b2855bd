//! Page-aligned host memory that both APIs use in place.
//!
//! OpenCL takes it by `CL_MEM_USE_HOST_PTR`, HIP by registration. Whether a driver works in place
//! or keeps a copy is not specified, so the bridge's probe decides. The device reads it over its
//! link: far slower than device memory on a discrete GPU.

use std::mem::ManuallyDrop;

use clmgr::HostPtrBuffer;

use super::Backing;
use crate::access::Span;
use crate::core::Core;
use crate::{Residency, Result, Route};

pub(crate) struct HostPinned {
    /// Ended first: HIP must let go of the pages before they are freed.
    registered: ManuallyDrop<hip::Registered<'static, u8>>,
    buffer: ManuallyDrop<HostPtrBuffer<u8>>,
}

impl HostPinned {
    pub(crate) fn allocate(core: &Core, bytes: usize) -> Result<Self> {
        let buffer = HostPtrBuffer::new(&core.context, bytes)?;
        // SAFETY: the buffer owns as many initialised bytes at this address and does not move or
        // free them while it lives. No reference to them is kept: OpenCL has their address only.
        let memory = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), bytes) };
        // SAFETY: the registration is dropped before the buffer, whose memory it is.
        let registered = unsafe { hip::Registered::new(&core.hip_device, memory) }?;
        Ok(Self {
            registered: ManuallyDrop::new(registered),
            buffer: ManuallyDrop::new(buffer),
        })
    }
}

impl Drop for HostPinned {
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let registered = unsafe { ManuallyDrop::take(&mut self.registered) };
        match registered.close() {
            // SAFETY: dropped once, here.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.buffer) },
            // HIP would take what gets these pages next for this memory: they stay.
            Err((error, registered)) => {
                registered.device().runtime().defer(error);
                std::mem::forget(registered);
            }
        }
    }
}

impl Backing for HostPinned {
    fn route(&self) -> Route {
        Route::HostPinned
    }

    fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    fn hip_ptr(&self) -> *mut u8 {
        self.registered.device_ptr()
    }

    fn is_known_to_hip(&self) -> bool {
        true
    }

    /// A guard shows the object, and OpenCL may know the pages by another address than HIP.
    fn spans(&self) -> Vec<Span> {
        let at = |address| Span::at(address, self.buffer.bytes());
        let addresses = [self.hip_ptr().addr(), self.buffer.as_ptr().addr()].map(at);
        let object = Span::of_object(self.buffer.raw(), 0..self.buffer.bytes());
        addresses.into_iter().chain([object]).collect()
    }

    fn cl_arg(&self) -> clmgr::Arg<'_> {
        self.buffer.arg()
    }

    fn cl_address(&self) -> Option<usize> {
        Some(self.buffer.as_ptr().addr())
    }

    /// By construction: ROCr does not know memory of `hipHostRegister` where the kernel registers it by its SVM
    /// interface.
    fn residency(&self, _: &Core) -> Residency {
        Residency::HostPinned
    }

    fn write(&mut self, core: &Core, begin: usize, data: &[u8]) -> Result<()> {
        Ok(self.buffer.write_at(&core.queue, begin, data)?)
    }

    fn read(&self, core: &Core, begin: usize, data: &mut [u8]) -> Result<()> {
        Ok(self.buffer.read_at(&core.queue, begin, data)?)
    }
}
