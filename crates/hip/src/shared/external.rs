use std::ffi::{c_uint, c_void};
use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use bytemuck::Pod;
use hip_sys::{
    hipExternalMemory_t, hipExternalMemoryBufferDesc, hipExternalMemoryDedicated, hipExternalMemoryHandleDesc,
    hipExternalMemoryHandleType,
};

use crate::buffer::{Mapping, view};
use crate::call::call;
use crate::layout::not_null;
use crate::{Device, DeviceBuffer, Result};

/// Device memory of another API or process, imported by a file descriptor: a dma-buf, or an opaque descriptor of
/// Vulkan. Cloning is cheap; the memory stays mapped until the last clone and the last buffer are gone.
///
/// It has its own address for the same pages: no copy is made, and no order is kept between its users. So importing is
/// `unsafe`:
///
/// ```compile_fail,E0133
/// fn import(device: &hip::Device, fd: std::os::fd::BorrowedFd<'_>) -> hip::Result<hip::ExternalMemory> {
///     device.import_memory(fd, 4096)
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "hipExternalMemory_t")]
pub struct ExternalMemory {
    core: Arc<Core>,
}

struct Core {
    device: Device,
    raw: hipExternalMemory_t,
    base: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: a handle and an address, neither of which belongs to a thread; both are only read until they are given back.
unsafe impl Send for Core {}
// SAFETY: as for `Send`.
unsafe impl Sync for Core {}

impl Device {
    /// Maps `bytes` bytes of the memory behind `fd`. The descriptor stays the caller's, who may close it afterwards
    /// (hipamd/src/hip_memory.cpp, `hipImportExternalMemory`; CUDA would take it).
    ///
    /// # Safety
    ///
    /// The memory has at least `bytes` bytes, and keeps them for as long as it is mapped: ROCm believes it and faults
    /// later. A dma-buf keeps its size. A file that stands for one on the host platform may be cut by others that have
    /// it, which ends this process with `SIGBUS`; the platform seals it against that where its maker permits seals
    /// (`MFD_ALLOW_SEALING`).
    ///
    /// # Errors
    ///
    /// 0 bytes, or not memory that this device can map: ROCm says `hipErrorOutOfMemory` then.
    #[doc(alias("hipImportExternalMemory", "hipExternalMemoryGetMappedBuffer"))]
    pub unsafe fn import_memory(&self, fd: BorrowedFd<'_>, bytes: usize) -> Result<ExternalMemory> {
        // SAFETY: the caller's promise.
        unsafe { self.import(fd, bytes, 0) }
    }

    /// As [`import_memory`](Self::import_memory), for memory that its owner allocated for one resource alone: Vulkan's
    /// `VkMemoryDedicatedAllocateInfo`. CUDA needs the flag; ROCm accepts it and maps all memory alike.
    ///
    /// # Safety
    ///
    /// As [`import_memory`](Self::import_memory).
    ///
    /// # Errors
    ///
    /// As [`import_memory`](Self::import_memory).
    #[doc(alias = "hipExternalMemoryDedicated")]
    pub unsafe fn import_dedicated_memory(&self, fd: BorrowedFd<'_>, bytes: usize) -> Result<ExternalMemory> {
        // SAFETY: the caller's promise.
        unsafe { self.import(fd, bytes, hipExternalMemoryDedicated) }
    }

    /// # Safety
    ///
    /// As [`import_memory`](Self::import_memory).
    unsafe fn import(&self, fd: BorrowedFd<'_>, bytes: usize, flags: c_uint) -> Result<ExternalMemory> {
        self.make_current()?;
        let mut desc = hipExternalMemoryHandleDesc {
            type_: hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd,
            size: bytes as u64,
            flags,
            ..hipExternalMemoryHandleDesc::default()
        };
        desc.handle.fd = fd.as_raw_fd();
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the description is filled and the descriptor open.
        unsafe {
            call!(
                self.runtime(),
                hipImportExternalMemory(&mut raw, &desc),
                "hipImportExternalMemory(fd {}, {bytes} bytes)",
                fd.as_raw_fd()
            )?;
        }
        // Always from the start: up to ROCm 7.1 HIP's own copies take a pointer mapped at an offset for the start of
        // the memory.
        let part = hipExternalMemoryBufferDesc {
            size: bytes as u64,
            ..hipExternalMemoryBufferDesc::default()
        };
        let mut base = ptr::null_mut();
        // SAFETY: writes one pointer to the address given; the handle is alive.
        let mapped = unsafe {
            call!(
                self.runtime(),
                hipExternalMemoryGetMappedBuffer(&mut base, raw, &part),
                "hipExternalMemoryGetMappedBuffer({bytes} bytes)"
            )
        };
        match mapped.and_then(|()| not_null(base, "hipExternalMemoryGetMappedBuffer")) {
            Ok(base) => Ok(ExternalMemory {
                core: Arc::new(Core {
                    device: self.clone(),
                    raw,
                    base,
                    bytes,
                }),
            }),
            Err(error) => {
                if let Err(error) = destroy(self, raw) {
                    self.runtime().defer(error);
                }
                Err(error)
            }
        }
    }
}

impl ExternalMemory {
    /// The device it was imported to.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    /// Bytes that were imported.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.core.bytes
    }

    /// `len` elements, beginning `offset` bytes into the memory.
    ///
    /// # Safety
    ///
    /// While the buffer and work queued through it use the memory, nothing writes what it reads, and nothing uses what
    /// it writes: neither its owner nor another buffer of it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) (in bytes), or an offset that does not suit the type.
    pub unsafe fn buffer<T: Pod>(&self, offset: usize, len: usize) -> Result<DeviceBuffer<T>> {
        let owner: Arc<Core> = self.core.clone();
        // SAFETY: mapped for as many bytes, until the owner goes; the caller vouches for the order.
        unsafe { view(&self.core.device, self.core.base, self.core.bytes, offset, len, owner) }
    }
}

fn destroy(device: &Device, raw: hipExternalMemory_t) -> Result<()> {
    // SAFETY: both callers give an imported handle up.
    unsafe {
        call!(
            device.runtime(),
            hipDestroyExternalMemory(raw),
            "hipDestroyExternalMemory()"
        )
    }
}

impl Mapping for Core {}

impl Drop for Core {
    fn drop(&mut self) {
        let base = self.base.as_ptr();
        let freed = self.device.make_current().and_then(|()| {
            // SAFETY: mapped by HIP and freed once; buffers are owners, and they wait for the device.
            unsafe { call!(self.device.runtime(), hipFree(base), "hipFree({base:?})") }
        });
        for outcome in [freed, destroy(&self.device, self.raw)] {
            if let Err(error) = outcome {
                self.device.runtime().defer(error);
            }
        }
    }
}

impl fmt::Debug for ExternalMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalMemory")
            .field("device", &self.device().ordinal())
            .field("bytes", &self.bytes())
            .finish()
    }
}
