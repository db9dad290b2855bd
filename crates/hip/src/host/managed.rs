use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use bytemuck::Pod;
use hip_sys::hipMemoryAdvise;

use super::memory::HostMemory;
use crate::call::call;
use crate::layout::{aligned, byte_size, not_null};
use crate::{Device, DeviceSlice, DeviceSliceMut, Error, Result, Stream, report};

/// Memory with one address for host and device, whose pages migrate to the side that accesses them where the device can
/// fault (XNACK), and stay in host memory otherwise.
///
/// The host reads and writes it through [`host`](Self::host) and [`host_mut`](Self::host_mut), which wait for the
/// device; the device through [`on`](Self::on) and [`on_mut`](Self::on_mut), as with a
/// [`DeviceBuffer`](crate::DeviceBuffer). Advice and prefetching change the speed, never the contents.
///
/// The host cannot look while the device may write, nor the device while the host does:
///
/// ```compile_fail,E0502
/// fn both(managed: &mut hip::ManagedBuffer<f32>, stream: &hip::Stream) -> hip::Result<f32> {
///     let seen = managed.host()?;
///     managed.on_mut(stream)?.fill_zero()?;
///     Ok(seen[0])
/// }
/// ```
///
/// ```compile_fail,E0499
/// fn both(managed: &mut hip::ManagedBuffer<f32>, stream: &hip::Stream) -> hip::Result<()> {
///     let mut slice = managed.on_mut(stream)?;
///     managed.host_mut()?[0] = 1.0;
///     slice.fill_zero()
/// }
/// ```
#[doc(alias = "hipMallocManaged")]
pub struct ManagedBuffer<T> {
    memory: HostMemory<T>,
}

// SAFETY: it owns its memory like `Vec<T>`, and managed memory belongs to the process, not to a thread.
unsafe impl<T: Send> Send for ManagedBuffer<T> {}
// SAFETY: shared access only reads; the record of uses is behind a lock.
unsafe impl<T: Sync> Sync for ManagedBuffer<T> {}

/// Where managed memory is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location<'a> {
    /// In the host's memory.
    Host,
    /// In the memory of a device, which need not be the buffer's.
    Device(&'a Device),
}

/// Advice about managed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "hipMemoryAdvise")]
#[non_exhaustive]
pub enum Advice<'a> {
    /// Mostly read: each reader may have a copy.
    ReadMostly,
    /// Revokes [`Advice::ReadMostly`].
    NotReadMostly,
    /// Pages stay there if they can.
    Preferred(Location<'a>),
    /// Revokes [`Advice::Preferred`].
    NoPreference,
    /// Stays mapped there, so reading does not fault.
    AccessedBy(Location<'a>),
    /// Revokes [`Advice::AccessedBy`].
    NotAccessedBy(Location<'a>),
    /// Coherent only at the ends of kernels; faster. Safe here: the host waits for the device anyway.
    CoarseGrain,
    /// Revokes [`Advice::CoarseGrain`].
    FineGrain,
}

impl Device {
    /// Managed memory for `len` elements, all bytes zero. No call is made for 0 bytes.
    ///
    /// # Errors
    ///
    /// Out of memory, or the device has no managed memory.
    #[doc(alias = "hipMallocManaged")]
    pub fn alloc_managed<T: Pod>(&self, len: usize) -> Result<ManagedBuffer<T>> {
        let bytes = byte_size::<T>(len)?;
        let mut host = NonNull::dangling();
        if bytes > 0 {
            self.make_current()?;
            let mut raw = ptr::null_mut();
            // SAFETY: writes one pointer to the address given; the flags are HIP's.
            unsafe {
                call!(
                    self.runtime(),
                    hipMallocManaged(&mut raw, bytes, hip_sys::hipMemAttachGlobal),
                    "hipMallocManaged({bytes} bytes)"
                )?;
            }
            host = not_null::<T>(raw, "hipMallocManaged")?;
            // SAFETY: the memory was just allocated with this size, is the host's to write, and zero bytes are a `T`.
            unsafe { ptr::write_bytes(raw.cast::<u8>(), 0, bytes) };
        }
        // SAFETY: initialised, of the device's too, and freed only when the buffer is dropped. It is not used before it
        // is known to be aligned.
        let memory = unsafe { HostMemory::at(self, host, host.as_ptr(), len) };
        let buffer = ManagedBuffer { memory };
        aligned(host, "hipMallocManaged")?;
        Ok(buffer)
    }
}

impl<T> ManagedBuffer<T> {
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

    /// The device whose streams use it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// The address, the same for host and device.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
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

    /// Moves the pages to `to`, in order of `stream`. The host does not wait.
    ///
    /// # Errors
    ///
    /// A stream of another device, or HIP refused it, for example because the device cannot fault.
    /// [`Error::NotSupported`](crate::Error::NotSupported) inside [`Stream::capture`].
    #[doc(alias = "hipMemPrefetchAsync")]
    pub fn prefetch(&self, stream: &Stream, to: Location<'_>) -> Result<()> {
        stream.not_recording("a prefetch")?;
        // A reader, as far as order goes.
        let slice = self.memory.on(stream)?;
        let bytes = self.memory.bytes();
        if bytes == 0 {
            return Ok(());
        }
        let number = self.number(to, "ManagedBuffer::prefetch")?;
        self.device().make_current()?;
        // SAFETY: the range is this buffer's; the stream is alive; moving pages changes no contents.
        unsafe {
            call!(
                self.device().runtime(),
                hipMemPrefetchAsync(slice.as_ptr().cast::<c_void>(), bytes, number, stream.raw_uncaptured()?),
                "hipMemPrefetchAsync({bytes} bytes to {number})"
            )
        }
    }

    /// Advises HIP how the memory will be used.
    ///
    /// # Errors
    ///
    /// A device of another runtime, or HIP refused it.
    #[doc(alias = "hipMemAdvise")]
    pub fn advise(&self, advice: Advice<'_>) -> Result<()> {
        let bytes = self.memory.bytes();
        if bytes == 0 {
            return Ok(());
        }
        // Where no place is meant HIP still checks the number.
        let own = Location::Device(self.device());
        let (advice, place) = match advice {
            Advice::ReadMostly => (hipMemoryAdvise::hipMemAdviseSetReadMostly, own),
            Advice::NotReadMostly => (hipMemoryAdvise::hipMemAdviseUnsetReadMostly, own),
            Advice::Preferred(place) => (hipMemoryAdvise::hipMemAdviseSetPreferredLocation, place),
            Advice::NoPreference => (hipMemoryAdvise::hipMemAdviseUnsetPreferredLocation, own),
            Advice::AccessedBy(place) => (hipMemoryAdvise::hipMemAdviseSetAccessedBy, place),
            Advice::NotAccessedBy(place) => (hipMemoryAdvise::hipMemAdviseUnsetAccessedBy, place),
            Advice::CoarseGrain => (hipMemoryAdvise::hipMemAdviseSetCoarseGrain, own),
            Advice::FineGrain => (hipMemoryAdvise::hipMemAdviseUnsetCoarseGrain, own),
        };
        let number = self.number(place, "ManagedBuffer::advise")?;
        // SAFETY: the range is this buffer's; advice changes no contents.
        unsafe {
            call!(
                self.device().runtime(),
                hipMemAdvise(self.as_ptr().cast::<c_void>(), bytes, advice, number),
                "hipMemAdvise({bytes} bytes, {advice:?}, {number})"
            )
        }
    }

    fn number(&self, place: Location<'_>, call: &'static str) -> Result<c_int> {
        match place {
            Location::Host => Ok(hip_sys::hipCpuDeviceId),
            Location::Device(device) if device.runtime().same(self.device().runtime()) => Ok(device.index()),
            Location::Device(device) => {
                self.device().check_same(device, call, "location")?;
                Ok(device.index())
            }
        }
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
        self.device().make_current()?;
        let pointer = self.memory.host_pointer().as_ptr().cast::<c_void>();
        // SAFETY: memory of `hipMallocManaged` that nothing uses, freed once.
        unsafe { call!(self.device().runtime(), hipFree(pointer), "hipFree({pointer:?})") }
    }
}

impl<T> Drop for ManagedBuffer<T> {
    fn drop(&mut self) {
        if self.memory.uses.settle() {
            if let Err(error) = self.free() {
                self.memory.device.runtime().defer(error);
            }
        } else {
            report::leaked("managed memory", self.memory.bytes());
        }
    }
}

impl<T> fmt::Debug for ManagedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedBuffer")
            .field("len", &self.len())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
