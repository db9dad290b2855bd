//! Device memory with an owner: where it comes from, and how it is freed.

mod backing;
mod mapped;
mod ordered;
mod peer;
mod pool;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

pub(crate) use backing::{Backing, Mapping};
use bytemuck::Pod;
pub(crate) use mapped::view;
pub use pool::{MemPool, PoolUsage};

use crate::call::call;
use crate::layout::{aligned, byte_size, not_null};
use crate::slice::Origin;
use crate::stream::Uses;
use crate::{Device, DeviceSlice, DeviceSliceMut, Error, Result, Stream, report};

/// Device memory with an owner.
///
/// [`Device::alloc`] and [`Stream::alloc`] make it, [`MemPool`](crate::MemPool),
/// [`ExternalMemory`](crate::ExternalMemory), [`IpcMemory`](crate::IpcMemory) and
/// [`VirtualMemory`](crate::VirtualMemory) too; they differ in how it is freed.
///
/// It is used through slices, each for one stream; see [the ordering model](crate#the-ordering-model). Dropping it
/// waits for the streams that used it, then frees it, for which HIP waits for all work of the device unless the memory is
/// a pool's. If it is not certain that they are done, the memory is leaked and
/// the error is deferred: memory that the device may still touch is never freed.
///
/// A slice borrows its buffer, so the buffer cannot go away or be written while the slice lives:
///
/// ```compile_fail,E0505
/// fn early(device: &hip::Device, stream: &hip::Stream) -> hip::Result<()> {
///     let buffer = device.alloc::<f32>(8)?;
///     let slice = buffer.on(stream)?;
///     drop(buffer);
///     slice.copy_to_slice(&mut [0.0; 8])
/// }
/// ```
///
/// ```compile_fail,E0502
/// fn both(device: &hip::Device, a: &hip::Stream, b: &hip::Stream) -> hip::Result<()> {
///     let mut buffer = device.alloc::<f32>(8)?;
///     let reader = buffer.on(a)?;
///     let mut writer = buffer.on_mut(b)?;
///     writer.fill_zero()?;
///     reader.copy_to_slice(&mut [0.0; 8])
/// }
/// ```
///
/// It also borrows its stream:
///
/// ```compile_fail,E0597
/// fn dangling(device: &hip::Device, buffer: &hip::DeviceBuffer<f32>) -> hip::Result<()> {
///     let slice;
///     {
///         let stream = device.stream()?;
///         slice = buffer.on(&stream)?;
///     }
///     slice.copy_to_slice(&mut [0.0; 8])
/// }
/// ```
#[doc(alias = "hipMalloc")]
pub struct DeviceBuffer<T> {
    /// Dangling if the size is 0.
    pointer: NonNull<T>,
    len: usize,
    device: Device,
    pub(crate) uses: Uses,
    backing: Backing,
    memory: PhantomData<T>,
}

// SAFETY: it owns its memory like `Vec<T>`, and HIP memory has no thread: "any device memory subsequently allocated
// from this host thread [...] will be allocated on device" fixes the device, not the thread that may use it.
unsafe impl<T: Send> Send for DeviceBuffer<T> {}
// SAFETY: shared access only reads; the record of uses is behind a lock.
unsafe impl<T: Sync> Sync for DeviceBuffer<T> {}

impl Device {
    /// Memory for `len` elements with unspecified contents. No call is made for 0 bytes.
    ///
    /// # Errors
    ///
    /// Out of memory (the text says how much is free), or more bytes than an address holds.
    #[doc(alias = "hipMalloc")]
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        DeviceBuffer::alloc(self, len)
    }

    /// Memory for `len` elements, all bytes zero. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Device::alloc`], or the fill failed; nothing stays allocated then.
    #[doc(alias = "hipMemset")]
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        DeviceBuffer::alloc_zeroed(self, len)
    }

    /// Memory with a copy of `source`. Complete when it returns.
    ///
    /// # Errors
    ///
    /// As [`Device::alloc`], or the copy failed; nothing stays allocated then.
    pub fn alloc_from<T: Pod>(&self, stream: &Stream, source: &[T]) -> Result<DeviceBuffer<T>> {
        let mut buffer = self.alloc(source.len())?;
        buffer.copy_from_slice(stream, source)?;
        Ok(buffer)
    }
}

impl<T: Pod> DeviceBuffer<T> {
    fn alloc(device: &Device, len: usize) -> Result<Self> {
        let bytes = byte_size::<T>(len)?;
        let pointer = if bytes == 0 {
            NonNull::dangling()
        } else {
            device.make_current()?;
            let mut raw = ptr::null_mut();
            // SAFETY: writes one pointer to the address given.
            unsafe { call!(device.runtime(), hipMalloc(&mut raw, bytes), "hipMalloc({bytes} bytes)")? };
            not_null(raw, "hipMalloc")?
        };
        let buffer = Self {
            pointer,
            len,
            device: device.clone(),
            uses: Uses::default(),
            backing: Backing::Device,
            memory: PhantomData,
        };
        aligned(pointer, "hipMalloc")?;
        Ok(buffer)
    }

    /// A buffer of memory that did not come from `hipMalloc`.
    ///
    /// # Safety
    ///
    /// `len` elements at `pointer` can be used by the streams of `device` once those in `uses` got to where they are
    /// now, until `backing` frees them; they hold a `T` each.
    pub(crate) unsafe fn from_backing(
        device: &Device,
        pointer: NonNull<T>,
        len: usize,
        uses: Uses,
        backing: Backing,
    ) -> Self {
        Self {
            pointer,
            len,
            device: device.clone(),
            uses,
            backing,
            memory: PhantomData,
        }
    }

    fn alloc_zeroed(device: &Device, len: usize) -> Result<Self> {
        let buffer = Self::alloc(device, len)?;
        let bytes = len * size_of::<T>();
        if bytes > 0 {
            let stream = Stream::create_urgent(device)?;
            // SAFETY: the memory was just allocated with this size, and nothing else uses it; the stream is waited for,
            // so the fill is not left behind (should the wait fail: the stream's drop waits, too, and `hipFree`
            // "performs an implicit hipDeviceSynchronize()"). Zero bytes are a value of plain data.
            unsafe {
                let raw = buffer.pointer.as_ptr().cast::<c_void>();
                call!(
                    device.runtime(),
                    hipMemsetAsync(raw, 0, bytes, stream.raw()),
                    "hipMemsetAsync(0, {bytes} bytes)"
                )?;
            }
            stream.synchronize()?;
        }
        Ok(buffer)
    }

    /// Copies from the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// Different lengths, a stream of another device, or the copy or earlier work failed.
    pub fn copy_from_slice(&mut self, stream: &Stream, source: &[T]) -> Result<()> {
        self.on_mut(stream)?.copy_from_slice(source)?;
        self.uses.forget();
        Ok(())
    }

    /// Copies to the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// Different lengths, a stream of another device, or the copy or earlier work failed.
    pub fn copy_to_slice(&self, stream: &Stream, destination: &mut [T]) -> Result<()> {
        self.on(stream)?.copy_to_slice(destination)
    }
}

impl<T> DeviceBuffer<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that has the memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The memory to read on `stream`, which waits for the last write. The host does not wait.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Result<DeviceSlice<'a, T>> {
        self.device.check_same(stream.device(), "DeviceBuffer::on", "stream")?;
        self.uses.read_on(stream)?;
        Ok(DeviceSlice::with_origin(
            self.pointer.as_ptr(),
            self.len,
            stream,
            Origin::Device,
        ))
    }

    /// The memory to write on `stream`, which waits for all use by other streams. The host does
    /// not wait.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<DeviceSliceMut<'a, T>> {
        self.device
            .check_same(stream.device(), "DeviceBuffer::on_mut", "stream")?;
        self.uses.write_on(stream)?;
        Ok(DeviceSliceMut::with_origin(
            self.pointer.as_ptr(),
            self.len,
            stream,
            Origin::Device,
        ))
    }

    pub(crate) fn pointer(&self) -> NonNull<T> {
        self.pointer
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Frees the memory as dropping does, and returns the error instead of deferring it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed, or HIP would not free it; the error returns the buffer.
    #[doc(alias = "hipFree")]
    #[expect(
        clippy::result_large_err,
        reason = "the owner comes back, and is as large as an owner is"
    )]
    pub fn close(mut self) -> Result<(), (Error, Self)> {
        if let Err(error) = self.release() {
            return Err((error, self));
        }
        // What is left for `drop` is a buffer without memory, whose streams it must not wait for.
        self.len = 0;
        self.uses.forget();
        self.backing = Backing::Device;
        Ok(())
    }

    /// Frees the memory; on an error it stays allocated.
    fn release(&mut self) -> Result<()> {
        if let Backing::Ordered { home, .. } = &self.backing {
            home.not_capturing("giving memory back in stream order")?;
            self.uses.wait_on(home)?;
        } else {
            self.uses.wait_for_all()?;
        }
        self.free()
    }

    fn free(&self) -> Result<()> {
        if self.len * size_of::<T>() == 0 {
            return Ok(());
        }
        // SAFETY: the pointer came from where the backing says, is given back once (all callers give the buffer up),
        // and nothing uses it, or nothing that its home stream is not ordered after.
        unsafe { self.backing.free(&self.device, self.pointer.as_ptr().cast::<c_void>()) }
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        let may_free = match &self.backing {
            // A captured release would repeat with every run of the graph. (Inside `Stream::capture` the stream itself
            // gets it.)
            Backing::Ordered { home, .. } if home.is_captured_by_handle() => false,
            Backing::Ordered { home, .. } => match self.uses.wait_on(home) {
                Ok(()) => true,
                Err(error) => {
                    self.device.runtime().defer(error);
                    self.uses.settle()
                }
            },
            Backing::Device | Backing::Mapped(_) => self.uses.settle(),
        };
        if !may_free {
            self.backing.leak();
            report::leaked("device memory", self.len * size_of::<T>());
        } else if let Err(error) = self.free() {
            self.device.runtime().defer(error);
        }
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("pointer", &self.pointer)
            .field("len", &self.len)
            .field("device", &self.device)
            .finish()
    }
}
