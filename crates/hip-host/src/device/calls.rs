//! The calls that choose, identify and describe devices.

use std::ffi::{CStr, c_char, c_int, c_uint};

use hip_sys::{
    hipDevice_t, hipDeviceAttribute_t as Attribute, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipError_t, hipUUID,
};

use super::{CAPABILITY, all, by_ordinal, current, set_current};
use crate::error::{entry, store};

/// Writes `text` and its terminator, cut to `len` bytes.
///
/// # Safety
/// `out` is valid for writing `len` bytes, `len > 0`.
unsafe fn write_text(out: *mut c_char, len: usize, text: &str) {
    let n = text.len().min(len - 1);
    // SAFETY: `n + 1 <= len` bytes are written, which the caller vouches for; the source is a live string.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, n);
        out.add(n).write(0);
    }
}

pub(crate) unsafe extern "C" fn init(flags: c_uint) -> hipError_t {
    entry("hipInit", || {
        if flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        current().map(|_| ())
    })
}

/// The version of the real library that this one models: HIP of ROCm 6.4.3.
const VERSION: c_int = 60_443_484;

fn version(call: &'static str, out: *mut c_int) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise the C caller promises room for an int.
    entry(call, || unsafe { store(out, VERSION) })
}

pub(crate) unsafe extern "C" fn runtime_get_version(out: *mut c_int) -> hipError_t {
    version("hipRuntimeGetVersion", out)
}

pub(crate) unsafe extern "C" fn driver_get_version(out: *mut c_int) -> hipError_t {
    version("hipDriverGetVersion", out)
}

pub(crate) unsafe extern "C" fn get_device_count(out: *mut c_int) -> hipError_t {
    entry("hipGetDeviceCount", || {
        // SAFETY: as in `version`.
        unsafe { store(out, all().len() as c_int) }?;
        if all().is_empty() {
            Err(hipError_t::hipErrorNoDevice)
        } else {
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn set_device(ordinal: c_int) -> hipError_t {
    entry("hipSetDevice", || {
        set_current(by_ordinal(ordinal)?);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn get_device(out: *mut c_int) -> hipError_t {
    // SAFETY: as in `version`.
    entry("hipGetDevice", || unsafe { store(out, current()?.ordinal as c_int) })
}

pub(crate) unsafe extern "C" fn device_get(out: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
    // SAFETY: as in `version`.
    entry("hipDeviceGet", || unsafe {
        store(out, by_ordinal(ordinal)?.ordinal as hipDevice_t)
    })
}

pub(crate) unsafe extern "C" fn device_get_name(out: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t {
    entry("hipDeviceGetName", || {
        let device = by_ordinal(device)?;
        if out.is_null() || len <= 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the C caller promises `len` bytes.
        unsafe { write_text(out, len as usize, &device.name()) };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_pci_bus_id(out: *mut c_char, len: c_int, device: c_int) -> hipError_t {
    entry("hipDeviceGetPCIBusId", || {
        let device = by_ordinal(device)?;
        let address = device.pci_address();
        if out.is_null() || len <= 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null, and the C caller promises `len` bytes.
        unsafe { write_text(out, len as usize, &address) };
        // What fits is written, but a cut address names another device.
        if len as usize <= address.len() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_by_pci_bus_id(out: *mut c_int, address: *const c_char) -> hipError_t {
    entry("hipDeviceGetByPCIBusId", || {
        if out.is_null() || address.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises a terminated string.
        let address = unsafe { CStr::from_ptr(address) }
            .to_string_lossy()
            .to_ascii_lowercase();
        let found = all().iter().find(|device| device.pci_address() == address);
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, found.ok_or(hipError_t::hipErrorInvalidValue)?.ordinal as c_int) }
    })
}

pub(crate) unsafe extern "C" fn device_get_uuid(out: *mut hipUUID, device: hipDevice_t) -> hipError_t {
    entry("hipDeviceGetUuid", || {
        let uuid = hipUUID {
            bytes: by_ordinal(device)?.uuid().map(|byte| byte as c_char),
        };
        // SAFETY: null is refused by `store`; otherwise the C caller promises room for a UUID.
        unsafe { store(out, uuid) }
    })
}

pub(crate) unsafe extern "C" fn device_total_mem(out: *mut usize, device: hipDevice_t) -> hipError_t {
    // SAFETY: null is refused by `store`; otherwise the C caller promises room for a size.
    entry("hipDeviceTotalMem", || unsafe {
        store(out, by_ordinal(device)?.total_bytes)
    })
}

pub(crate) unsafe extern "C" fn device_compute_capability(
    major: *mut c_int,
    minor: *mut c_int,
    device: hipDevice_t,
) -> hipError_t {
    entry("hipDeviceComputeCapability", || {
        by_ordinal(device)?;
        if major.is_null() || minor.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: neither is null; the C caller promises room for an int at each.
        unsafe {
            store(major, CAPABILITY.0)?;
            store(minor, CAPABILITY.1)
        }
    })
}

pub(crate) unsafe extern "C" fn device_get_attribute(
    out: *mut c_int,
    attribute: Attribute,
    device: c_int,
) -> hipError_t {
    entry("hipDeviceGetAttribute", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let value = by_ordinal(device)?
            .attribute(attribute)
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        // SAFETY: not null; the C caller promises room for an int.
        unsafe { store(out, value) }
    })
}

pub(crate) unsafe extern "C" fn get_device_properties(out: *mut hipDeviceProp_tR0600, device: c_int) -> hipError_t {
    entry("hipGetDevicePropertiesR0600", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises room for the structure.
        unsafe { store(out, by_ordinal(device)?.properties()) }
    })
}

pub(crate) unsafe extern "C" fn get_device_properties_r0000(
    out: *mut hipDeviceProp_tR0000,
    device: c_int,
) -> hipError_t {
    entry("hipGetDevicePropertiesR0000", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: not null; the C caller promises room for the structure.
        unsafe { store(out, by_ordinal(device)?.old_properties()) }
    })
}

pub(crate) unsafe extern "C" fn mem_get_info(free: *mut usize, total: *mut usize) -> hipError_t {
    entry("hipMemGetInfo", || {
        let device = current()?;
        if free.is_null() && total.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: each pointer is null and skipped, or room for a size by the C caller's promise.
        unsafe {
            if !free.is_null() {
                store(free, device.free_bytes())?;
            }
            if !total.is_null() {
                store(total, device.total_bytes)?;
            }
        }
        Ok(())
    })
}
