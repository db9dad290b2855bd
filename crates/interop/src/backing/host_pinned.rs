//! Page-aligned host memory that both APIs use in place.
//!
//! OpenCL takes it by `CL_MEM_USE_HOST_PTR`, HIP by registration. Whether a driver works in place
//! or keeps a copy is not specified, so the bridge's probe decides. The device reads it over its
//! link: far slower than device memory on a discrete GPU.

use crate::Result;
use crate::core::Core;
use bytemuck::Pod;
use clmgr::HostPtrBuffer;

pub(crate) struct HostPinned<T: Pod> {
    // Dropped first: HIP must let go of the pages before they are freed.
    registered: hip::Registered<'static, T>,
    buffer: HostPtrBuffer<T>,
}

impl<T: Pod> HostPinned<T> {
    pub(crate) fn allocate(core: &Core, len: usize) -> Result<Self> {
        let buffer = HostPtrBuffer::new(&core.context, len)?;
        // SAFETY: the buffer owns `len` initialised elements at this address and does not move or
        // free them while it lives. No reference to them is kept: OpenCL has their address only.
        let elements = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), len) };
        // SAFETY: the registration is dropped before the buffer, whose memory it is.
        let registered = unsafe { hip::Registered::new(&core.hip_device, elements) }?;
        Ok(Self { registered, buffer })
    }

    pub(crate) fn host_ptr(&self) -> *const T {
        self.buffer.as_ptr()
    }

    pub(crate) fn hip_ptr(&self) -> *mut T {
        self.registered.device_ptr()
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
