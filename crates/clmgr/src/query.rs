//! Reading a property of any OpenCL object: the calls `clGet…Info` all work alike.

use std::ffi::c_void;

use crate::error::{Result, check};

/// Queries one value of a property.
///
/// # Safety
///
/// `get` calls an OpenCL query that writes at most the given number of bytes, and every value of
/// the property is a valid `V`, for which all bytes zero are valid too.
pub(crate) unsafe fn value<V>(call: &'static str, what: u32, get: impl FnOnce(usize, *mut c_void) -> i32) -> Result<V> {
    let mut value = std::mem::MaybeUninit::<V>::zeroed();
    let code = get(size_of::<V>(), value.as_mut_ptr().cast());
    check(code, || format!("{call}(0x{what:04X})"))?;
    // SAFETY: the memory is zeroed or written by the query, and the caller answers for both.
    Ok(unsafe { value.assume_init() })
}

/// Queries a list of values of a property.
///
/// # Safety
///
/// As [`value`]; `get` also takes the place for the size, which may be null.
pub(crate) unsafe fn list<V>(
    call: &'static str,
    what: u32,
    get: impl Fn(usize, *mut c_void, *mut usize) -> i32,
) -> Result<Vec<V>> {
    let describe = || format!("{call}(0x{what:04X})");
    let mut bytes = 0;
    check(get(0, std::ptr::null_mut(), &raw mut bytes), describe)?;
    let len = bytes / size_of::<V>();
    let mut values: Vec<V> = Vec::with_capacity(len);
    if len > 0 {
        let room = len * size_of::<V>();
        // SAFETY: zeroes are valid values, and there is room for `len` of them.
        unsafe {
            std::ptr::write_bytes(values.as_mut_ptr(), 0, len);
            values.set_len(len);
        }
        check(get(room, values.as_mut_ptr().cast(), std::ptr::null_mut()), describe)?;
    }
    Ok(values)
}

/// Queries the size of a string property and then the string.
pub(crate) fn text(call: &str, what: u32, get: impl Fn(usize, *mut c_void, *mut usize) -> i32) -> Result<String> {
    let mut size = 0;
    let describe = || format!("{call}(0x{what:04X})");
    check(get(0, std::ptr::null_mut(), &raw mut size), describe)?;
    let mut bytes = vec![0u8; size];
    if size > 0 {
        check(get(size, bytes.as_mut_ptr().cast(), std::ptr::null_mut()), describe)?;
    }
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
}
