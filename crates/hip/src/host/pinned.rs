use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};

use bytemuck::Pod;

use super::memory::HostMemory;
use crate::call::call;
use crate::layout::{aligned, byte_size, not_null};
use crate::{Device, DeviceSlice, DeviceSliceMut, Error, Result, Stream, report};

/// Page-locked host memory with an owner. The device reaches it over the bus; copies from and to it need no staging.
///
/// The host reads and writes it through [`host`](Self::host) and [`host_mut`](Self::host_mut), which wait for the
/// device; the device through [`on`](Self::on) and [`on_mut`](Self::on_mut), as with a
/// [`DeviceBuffer`](crate::DeviceBuffer).
///
/// The host cannot read while the device may write:
///
/// ```compile_fail,E0502
/// fn race(memory: &mut hip::PinnedBuffer<f32>, stream: &hip::Stream) -> hip::Result<f32> {
///     let seen = memory.host()?;
///     memory.on_mut(stream)?.fill_zero()?;
///     Ok(seen[0])
/// }
/// ```
#[doc(alias = "hipHostMalloc")]
pub struct PinnedBuffer<T> {
    memory: HostMemory<T>,
}

// SAFETY: it owns its memory like `Vec<T>`; page-locking belongs to the process, not to a thread.
unsafe impl<T: Send> Send for PinnedBuffer<T> {}
// SAFETY: shared access only reads; the record of uses is behind a lock.
unsafe impl<T: Sync> Sync for PinnedBuffer<T> {}

impl Device {
    /// Page-locked host memory that this device can reach, all bytes zero.
    ///
    /// # Errors
    ///
    /// Out of memory, or more bytes than an address holds.
    #[doc(alias = "hipHostMalloc")]
    pub fn alloc_pinned<T: Pod>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        PinnedBuffer::new(self, len)
    }
}

impl<T: Pod> PinnedBuffer<T> {
    /// Memory for `len` elements, all bytes zero. No call is made for 0 bytes.
    ///
    /// # Errors
    ///
    /// Out of memory, or more bytes than an address holds.
    pub fn new(device: &Device, len: usize) -> Result<Self> {
        let bytes = byte_size::<T>(len)?;
        if bytes == 0 {
            // SAFETY: nothing has to be behind a dangling pointer for 0 bytes.
            let memory = unsafe { HostMemory::new(device, NonNull::dangling(), len)? };
            return Ok(Self { memory });
        }
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer to the address given; the flags are HIP's.
        unsafe {
            call!(
                device.runtime(),
                hipHostMalloc(&mut raw, bytes, hip_sys::hipHostMallocDefault),
                "hipHostMalloc({bytes} bytes)"
            )?;
        }
        let host = not_null::<T>(raw, "hipHostMalloc")?;
        // SAFETY: the memory was just allocated with this size, is the host's to write, and zero bytes are a `T`.
        unsafe { ptr::write_bytes(raw.cast::<u8>(), 0, bytes) };
        let memory = aligned(host, "hipHostMalloc").and_then(|()| {
            // SAFETY: initialised, aligned, page-locked, and freed only when the buffer is dropped.
            unsafe { HostMemory::new(device, host, len) }
        });
        match memory {
            Ok(memory) => Ok(Self { memory }),
            Err(error) => {
                if let Err(error) = free(device, host.as_ptr().cast()) {
                    device.runtime().defer(error);
                }
                Err(error)
            }
        }
    }
}

impl<T> PinnedBuffer<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that can reach it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// The address for the device. It may differ from the host's.
    #[must_use]
    pub fn device_ptr(&self) -> *mut T {
        self.memory.device_pointer()
    }

    /// The memory to read on `stream`, which waits for the last write.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Result<DeviceSlice<'a, T>> {
        self.memory.on(stream)
    }

    /// The memory to write on `stream`, which waits for all use by other streams.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<DeviceSliceMut<'a, T>> {
        self.memory.on_mut(stream)
    }

    /// The memory to read on the host. Blocks until the device has finished writing it.
    ///
    /// # Errors
    ///
    /// The stream that wrote it failed.
    pub fn host(&self) -> Result<&[T]> {
        self.memory.host()
    }

    /// The memory to write on the host. Blocks until the device has finished using it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed.
    pub fn host_mut(&mut self) -> Result<&mut [T]> {
        self.memory.host_mut()
    }

    /// Frees the memory as dropping does, and returns the error instead of deferring it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed, or HIP would not free it; the error returns the buffer.
    #[expect(
        clippy::result_large_err,
        reason = "the owner comes back, and is as large as an owner is"
    )]
    pub fn close(mut self) -> Result<(), (Error, Self)> {
        if let Err(error) = self.memory.uses.wait_for_all().and_then(|()| self.free()) {
            return Err((error, self));
        }
        // What is left for `drop` is a buffer without memory.
        self.memory.clear();
        Ok(())
    }

    fn free(&self) -> Result<()> {
        if self.memory.bytes() == 0 {
            return Ok(());
        }
        free(&self.memory.device, self.memory.host_pointer().as_ptr().cast())
    }
}

fn free(device: &Device, host: *mut c_void) -> Result<()> {
    device.make_current()?;
    // SAFETY: every caller passes memory of `hipHostMalloc` that nothing uses, once.
    unsafe { call!(device.runtime(), hipHostFree(host), "hipHostFree({host:?})") }
}

impl<T> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if self.memory.uses.settle() {
            if let Err(error) = self.free() {
                self.memory.device.runtime().defer(error);
            }
        } else {
            report::leaked("page-locked memory", self.memory.bytes());
        }
    }
}

impl<T> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedBuffer")
            .field("len", &self.len())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
