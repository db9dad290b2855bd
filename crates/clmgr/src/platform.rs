//! The platforms of a library: which there are, what they report, and their devices.

use opencl_sys::{cl_device_id, cl_int, cl_platform_id, cl_platform_info, cl_uint};

use crate::api::{Api, slot};
use crate::error::{Result, check};
use crate::handle::Handle;
use crate::{pocl, query};

/// The code of an ICD loader that knows no driver.
const PLATFORM_NOT_FOUND: cl_int = -1001;

/// The platforms that a table's `clGetPlatformIDs` returns.
pub(crate) fn all(api: &Api) -> Result<Vec<Handle>> {
    let get = slot!(api, clGetPlatformIDs)?;
    collect("clGetPlatformIDs", |entries, ids, count| {
        // SAFETY: `ids` is null with `entries` zero, or has room for `entries` handles; `count` is
        // a valid place.
        unsafe { get(entries, ids, count) }
    })
}

/// Queries the number of platforms and then the platforms.
pub(crate) fn collect(
    name: &str,
    get: impl Fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int,
) -> Result<Vec<Handle>> {
    let mut count: cl_uint = 0;
    let code = get(0, std::ptr::null_mut(), &raw mut count);
    if code == PLATFORM_NOT_FOUND || (code == opencl_sys::CL_SUCCESS && count == 0) {
        return Ok(Vec::new());
    }
    check(code, || format!("{name}(count)"))?;
    let mut ids: Vec<cl_platform_id> = vec![std::ptr::null_mut(); count as usize];
    check(get(count, ids.as_mut_ptr(), &raw mut count), || {
        format!("{name}({count})")
    })?;
    ids.truncate(count as usize);
    Ok(ids.into_iter().filter(|id| !id.is_null()).map(Handle).collect())
}

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
pub(crate) fn version(api: &Api, platform: Handle) -> Result<String> {
    text(api, platform, opencl_sys::CL_PLATFORM_VERSION)
}

/// A text that a platform reports.
pub(crate) fn text(api: &Api, platform: Handle, what: cl_platform_info) -> Result<String> {
    let get = slot!(api, clGetPlatformInfo)?;
    query::text("clGetPlatformInfo", what, |size, value, needed| {
        // SAFETY: `value` is null with `size` zero, or has room for `size` bytes; `needed` is a
        // valid place; the platform is one the library gave.
        unsafe { get(platform.0, what, size, value, needed) }
    })
}

/// The message that a platform has no device, with the cause if known.
pub(crate) fn without_device(api: &Api, platform: Handle) -> String {
    let name = text(api, platform, opencl_sys::CL_PLATFORM_NAME).unwrap_or_default();
    let cause = pocl::without_device(&name, |variable| std::env::var_os(variable));
    match cause {
        Some(cause) => format!("its platform `{name}` has no device; {cause}"),
        None => format!("its platform `{name}` has no device"),
    }
}

/// The devices of a platform; none is not an error.
pub(crate) fn device_ids(api: &Api, platform: Handle) -> Result<Vec<Handle>> {
    let get = slot!(api, clGetDeviceIDs)?;
    let all = opencl_sys::CL_DEVICE_TYPE_ALL;
    let mut count: cl_uint = 0;
    // SAFETY: the platform is one that the library gave; no device is asked for; `count` is a
    // valid place.
    let code = unsafe { get(platform.0, all, 0, std::ptr::null_mut(), &raw mut count) };
    if code == opencl_sys::CL_DEVICE_NOT_FOUND || count == 0 {
        return Ok(Vec::new());
    }
    check(code, || "clGetDeviceIDs(count)".to_owned())?;
    let mut ids: Vec<cl_device_id> = vec![std::ptr::null_mut(); count as usize];
    // SAFETY: as above, and there is room for `count` handles.
    let code = unsafe { get(platform.0, all, count, ids.as_mut_ptr(), std::ptr::null_mut()) };
    check(code, || format!("clGetDeviceIDs({count})"))?;
    Ok(ids.into_iter().filter(|id| !id.is_null()).map(Handle).collect())
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
