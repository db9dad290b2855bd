use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;

use crate::call::call;
use crate::layout::{aligned, not_null};
use crate::slice::Origin;
use crate::stream::Uses;
use crate::{Device, DeviceSlice, DeviceSliceMut, Result, Stream};

/// Host memory that the device can reach: what [`PinnedBuffer`](crate::PinnedBuffer) and
/// [`Registered`](crate::Registered) have in common. It owns nothing.
pub(crate) struct HostMemory<T> {
    host: NonNull<T>,
    device_pointer: *mut T,
    len: usize,
    pub(crate) device: Device,
    pub(crate) uses: Uses,
}

impl<T> HostMemory<T> {
    /// Looks up the device address.
    ///
    /// # Safety
    ///
    /// `len` initialised, aligned elements at `host`, page-locked for `device` by HIP (or 0 bytes), for as long as the
    /// result is in use.
    pub(crate) unsafe fn new(device: &Device, host: NonNull<T>, len: usize) -> Result<Self> {
        let mut mapped = ptr::null_mut();
        let device_pointer = if len * size_of::<T>() == 0 {
            host.as_ptr()
        } else {
            device.make_current()?;
            // SAFETY: writes one pointer to the address given; `host` is page-locked memory that HIP knows.
            unsafe {
                call!(
                    device.runtime(),
                    hipHostGetDevicePointer(&mut mapped, host.as_ptr().cast::<c_void>(), 0),
                    "hipHostGetDevicePointer({host:?})"
                )?;
            }
            let mapped = not_null::<T>(mapped, "hipHostGetDevicePointer")?;
            aligned(mapped, "hipHostGetDevicePointer")?;
            mapped.as_ptr()
        };
        // SAFETY: the caller's promise is the callee's demand, and HIP just told the device's address.
        Ok(unsafe { Self::at(device, host, device_pointer, len) })
    }

    /// Memory whose address for the device is known.
    ///
    /// # Safety
    ///
    /// `len` initialised, aligned elements at `host`, which the device sees at `device_pointer`, for as long as the
    /// result is in use.
    pub(crate) unsafe fn at(device: &Device, host: NonNull<T>, device_pointer: *mut T, len: usize) -> Self {
        Self {
            host,
            device_pointer,
            len,
            device: device.clone(),
            uses: Uses::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// From now on 0 elements.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn host_pointer(&self) -> NonNull<T> {
        self.host
    }

    pub(crate) fn device_pointer(&self) -> *mut T {
        self.device_pointer
    }

    pub(crate) fn on<'a>(&'a self, stream: &'a Stream) -> Result<DeviceSlice<'a, T>> {
        self.device.check_same(stream.device(), "on", "stream")?;
        self.uses.read_on(stream)?;
        Ok(DeviceSlice::with_origin(
            self.device_pointer,
            self.len,
            stream,
            Origin::Known,
        ))
    }

    pub(crate) fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<DeviceSliceMut<'a, T>> {
        self.device.check_same(stream.device(), "on_mut", "stream")?;
        self.uses.write_on(stream)?;
        Ok(DeviceSliceMut::with_origin(
            self.device_pointer,
            self.len,
            stream,
            Origin::Known,
        ))
    }

    pub(crate) fn host(&self) -> Result<&[T]> {
        self.uses.wait_for_writer()?;
        // SAFETY: initialised, aligned, and alive as long as `self`. The device has finished writing, and can only be
        // let write again with `&mut self`.
        Ok(unsafe { slice::from_raw_parts(self.host.as_ptr(), self.len) })
    }

    pub(crate) fn host_mut(&mut self) -> Result<&mut [T]> {
        self.uses.wait_for_all()?;
        // SAFETY: as `host`; the device has also finished reading, and `&mut self` keeps it from starting anew.
        Ok(unsafe { slice::from_raw_parts_mut(self.host.as_ptr(), self.len) })
    }
}
