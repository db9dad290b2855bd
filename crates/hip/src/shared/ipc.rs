//! Memory and events of one process in another.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use bytemuck::Pod;
use hip_sys::{hipIpcEventHandle_t, hipIpcMemHandle_t};

use crate::buffer::{Backing, Mapping, view};
use crate::call::call;
use crate::layout::not_null;
use crate::{Device, DeviceBuffer, Error, Event, Result};

/// What another process needs to open a [`DeviceBuffer`] of this one: 64 bytes, to be sent as they are.
///
/// No type knows what the other process does, so opening is `unsafe`:
///
/// ```compile_fail,E0133
/// fn open(handle: &hip::IpcMemory, device: &hip::Device) -> hip::Result<hip::DeviceBuffer<u32>> {
///     handle.open(device, 64)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "hipIpcMemHandle_t")]
pub struct IpcMemory {
    /// The handle.
    pub bytes: [u8; 64],
}

/// What another process needs to open an [`Event`] of this one: 64 bytes, to be sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "hipIpcEventHandle_t")]
pub struct IpcEvent {
    /// The handle.
    pub bytes: [u8; 64],
}

impl<T: Pod> DeviceBuffer<T> {
    /// The handle by which another process opens this memory, for as long as this buffer lives.
    ///
    /// # Errors
    ///
    /// Memory that is not from [`Device::alloc`], none at all, or HIP could not share it.
    #[doc(alias = "hipIpcGetMemHandle")]
    pub fn share(&self) -> Result<IpcMemory> {
        if !matches!(self.backing(), Backing::Device) || self.len() * size_of::<T>() == 0 {
            return Err(Error::NotSupported {
                what: "sharing this buffer",
                reason: "HIP shares only whole allocations of `Device::alloc`; use `Device::virtual_memory` for others",
            });
        }
        // SAFETY: the memory is alive, and the caller is told how long it has to be.
        unsafe { self.device().share_allocation(self.pointer().as_ptr().cast()) }
    }
}

impl Device {
    /// The handle by which another process opens an allocation of `hipMalloc`, which begins at `base`. As
    /// [`DeviceBuffer::share`], for memory that other code allocated.
    ///
    /// The handle names the whole allocation, and opening it yields its first byte: send along the offset at which your
    /// memory begins ([`Device::allocation_of`]).
    ///
    /// # Safety
    ///
    /// `base` is a HIP address, and the allocation is not freed while another process uses it.
    ///
    /// # Errors
    ///
    /// HIP does not know the memory as its own (`hipErrorInvalidValue`), or could not share it.
    #[doc(alias = "hipIpcGetMemHandle")]
    pub unsafe fn share_allocation(&self, base: *const c_void) -> Result<IpcMemory> {
        self.make_current()?;
        let mut handle = hipIpcMemHandle_t::default();
        // SAFETY: writes one handle to the address given; the memory is alive by the caller's promise.
        unsafe {
            call!(
                self.runtime(),
                hipIpcGetMemHandle(&mut handle, base.cast_mut()),
                "hipIpcGetMemHandle({base:?})"
            )?;
        }
        Ok(IpcMemory {
            bytes: bytemuck::cast(handle.reserved),
        })
    }
}

impl IpcMemory {
    /// Opens memory of another process.
    ///
    /// # Safety
    ///
    /// - The bytes are those that [`DeviceBuffer::share`] returned in a process of the same HIP release.
    /// - That buffer outlives this one and the work queued through it.
    /// - While they use the memory, nothing writes what they read, and nothing uses what they write.
    ///
    /// # Errors
    ///
    /// Less than `len` elements, a handle of this very process (`hipErrorInvalidContext`), or the other process is
    /// gone.
    #[doc(alias = "hipIpcOpenMemHandle")]
    pub unsafe fn open<T: Pod>(&self, device: &Device, len: usize) -> Result<DeviceBuffer<T>> {
        device.make_current()?;
        let handle = hipIpcMemHandle_t {
            reserved: bytemuck::cast(self.bytes),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: writes one pointer to the address given; the caller vouches for the handle.
        unsafe {
            call!(
                device.runtime(),
                hipIpcOpenMemHandle(&mut raw, handle, hip_sys::hipIpcMemLazyEnablePeerAccess),
                "hipIpcOpenMemHandle()"
            )?;
        }
        let opened = Arc::new(Opened {
            base: not_null(raw, "hipIpcOpenMemHandle")?,
            device: device.clone(),
        });
        let (mut start, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: writes a pointer and a size to the addresses given, neither of which HIP lets be null.
        unsafe {
            call!(
                device.runtime(),
                hipMemGetAddressRange(&mut start, &mut bytes, raw),
                "hipMemGetAddressRange({raw:?})"
            )?;
        }
        let bytes = bytes.saturating_sub(raw.addr() - start.addr());
        // SAFETY: HIP says that there are as many bytes, until the owner closes them; the caller vouches for the order.
        unsafe { view(device, opened.base, bytes, 0, len, opened.clone()) }
    }
}

/// Memory that was opened, closed with its last owner.
struct Opened {
    base: NonNull<c_void>,
    device: Device,
}

// SAFETY: an address that belongs to no thread.
unsafe impl Send for Opened {}
// SAFETY: as for `Send`.
unsafe impl Sync for Opened {}

impl Mapping for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        let base = self.base.as_ptr();
        let closed = self.device.make_current().and_then(|()| {
            // SAFETY: opened by HIP and closed once; buffers are owners, and they wait for the device.
            unsafe {
                call!(
                    self.device.runtime(),
                    hipIpcCloseMemHandle(base),
                    "hipIpcCloseMemHandle({base:?})"
                )
            }
        });
        if let Err(error) = closed {
            self.device.runtime().defer(error);
        }
    }
}

impl Device {
    /// A new event that can be [shared](Event::share) with other processes. It measures no time.
    ///
    /// # Errors
    ///
    /// HIP could not create it.
    #[doc(alias = "hipEventInterprocess")]
    pub fn shared_event(&self) -> Result<Event> {
        let flags = hip_sys::hipEventInterprocess | hip_sys::hipEventDisableTiming;
        Event::create(self, flags)
    }
}

impl Event {
    /// The handle by which another process opens this event.
    ///
    /// # Errors
    ///
    /// An event that is not from [`Device::shared_event`].
    #[doc(alias = "hipIpcGetEventHandle")]
    pub fn share(&self) -> Result<IpcEvent> {
        self.device().make_current()?;
        let mut handle = hipIpcEventHandle_t::default();
        // SAFETY: writes one handle to the address given; the event is alive.
        unsafe {
            call!(
                self.device().runtime(),
                hipIpcGetEventHandle(&mut handle, self.raw()),
                "hipIpcGetEventHandle()"
            )?;
        }
        Ok(IpcEvent {
            bytes: bytemuck::cast(handle.reserved),
        })
    }
}

impl IpcEvent {
    /// Opens an event of another process. Recording it there is visible here, and the other way round.
    ///
    /// # Safety
    ///
    /// The bytes are those that [`Event::share`] returned in a process of the same HIP release: HIP reads a name out of
    /// them.
    ///
    /// # Errors
    ///
    /// A handle of this very process, or the other process is gone.
    #[doc(alias = "hipIpcOpenEventHandle")]
    pub unsafe fn open(&self, device: &Device) -> Result<Event> {
        device.make_current()?;
        let handle = hipIpcEventHandle_t {
            reserved: bytemuck::cast(self.bytes),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the caller vouches for the handle.
        unsafe {
            call!(
                device.runtime(),
                hipIpcOpenEventHandle(&mut raw, handle),
                "hipIpcOpenEventHandle()"
            )?;
        }
        let raw = not_null::<hip_sys::ihipEvent_t>(raw.cast(), "hipIpcOpenEventHandle")?;
        // SAFETY: just opened, with no other owner.
        Ok(unsafe { Event::from_raw(device, raw.as_ptr()) })
    }
}
