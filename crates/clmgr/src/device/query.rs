//! Queries of a device.

use std::ffi::c_void;

use opencl_sys::cl_device_info;

use crate::api::{Api, slot};
use crate::error::{Result, check};
use crate::handle::Handle;
use crate::query::{list, text};

/// Queries of one device.
pub(crate) struct Query<'a> {
    pub api: &'a Api,
    pub id: Handle,
}

impl Query<'_> {
    fn raw(&self, what: cl_device_info, size: usize, value: *mut c_void, needed: *mut usize) -> Result<i32> {
        let get = slot!(self.api, clGetDeviceInfo)?;
        // SAFETY: the callers below give a place of `size` bytes or null with zero, and a valid
        // `needed` or null; the device is one that the library gave.
        Ok(unsafe { get(self.id.0, what, size, value, needed) })
    }

    pub fn text(&self, what: cl_device_info) -> Result<String> {
        slot!(self.api, clGetDeviceInfo)?;
        text("clGetDeviceInfo", what, |size, value, needed| {
            self.raw(what, size, value, needed)
                .unwrap_or(opencl_sys::CL_INVALID_VALUE)
        })
    }

    /// A property of one size, which the answer has.
    pub fn value<T: bytemuck::Pod>(&self, what: cl_device_info) -> Result<T> {
        let mut value = T::zeroed();
        let code = self.raw(what, size_of::<T>(), (&raw mut value).cast(), std::ptr::null_mut())?;
        check(code, || format!("clGetDeviceInfo(0x{what:04X})"))?;
        Ok(value)
    }

    /// A property that is a list of plain values.
    pub fn list<T: bytemuck::Pod>(&self, what: cl_device_info) -> Result<Vec<T>> {
        slot!(self.api, clGetDeviceInfo)?;
        let ask = |size, place, needed| {
            self.raw(what, size, place, needed)
                .unwrap_or(opencl_sys::CL_INVALID_VALUE)
        };
        // SAFETY: any bytes are a valid `T`.
        unsafe { list("clGetDeviceInfo", what, ask) }
    }
}
