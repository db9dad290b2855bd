//! Queries of a device or a platform.

use std::ffi::c_void;

use opencl_sys::{cl_device_info, cl_platform_info};

use crate::api::{Api, slot};
use crate::error::{Result, check};
use crate::external::list;
use crate::handle::Handle;

/// The two numbers of a version string such as `OpenCL 2.1 AMD-APP`.
pub(crate) fn version_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text
        .strip_prefix("OpenCL ")?
        .split_ascii_whitespace()
        .next()?
        .split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version string of a platform.
pub(crate) fn platform_version(api: &Api, platform: Handle) -> Result<String> {
    platform_text(api, platform, opencl_sys::CL_PLATFORM_VERSION)
}

pub(crate) fn platform_text(api: &Api, platform: Handle, what: cl_platform_info) -> Result<String> {
    let get = slot!(api, clGetPlatformInfo)?;
    text("clGetPlatformInfo", what, |size, value, needed| {
        // SAFETY: `value` is null with `size` zero, or has room for `size` bytes; `needed` is a
        // valid place; the platform is one the library gave.
        unsafe { get(platform.0, what, size, value, needed) }
    })
}

/// Queries the size of a string property and then the string.
pub(crate) fn text(
    call: &str,
    what: u32,
    get: impl Fn(usize, *mut c_void, *mut usize) -> i32,
) -> Result<String> {
    let mut size = 0;
    let describe = || format!("{call}(0x{what:04X})");
    check(get(0, std::ptr::null_mut(), &raw mut size), describe)?;
    let mut bytes = vec![0u8; size];
    if size > 0 {
        check(
            get(size, bytes.as_mut_ptr().cast(), std::ptr::null_mut()),
            describe,
        )?;
    }
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
}

/// Queries of one device.
pub(crate) struct Query<'a> {
    pub api: &'a Api,
    pub id: Handle,
}

impl Query<'_> {
    fn raw(
        &self,
        what: cl_device_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> Result<i32> {
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
        let code = self.raw(
            what,
            size_of::<T>(),
            (&raw mut value).cast(),
            std::ptr::null_mut(),
        )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_strings_of_all_vendors_are_understood() {
        assert_eq!(version_numbers("OpenCL 2.1 AMD-APP (3614.0)"), Some((2, 1)));
        assert_eq!(version_numbers("OpenCL 3.0 CUDA 13.0"), Some((3, 0)));
        assert_eq!(version_numbers("OpenCL 1.2"), Some((1, 2)));
        assert_eq!(version_numbers("OpenGL 4.6"), None);
    }
}
