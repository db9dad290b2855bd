//! The primary context of a device: everything that the program keeps there.

use std::ffi::{c_int, c_uint};

use hip_sys::{hipDevice_t, hipError_t};

use crate::device::{self, Device};
use crate::error::{entry, store};
use crate::{memory, stream};

/// Whether the program has done anything with the device.
fn is_in_use(device: &Device) -> bool {
    device.has_contexts_or_memory() || !stream::of(device).living().is_empty()
}

pub(crate) unsafe extern "C" fn device_primary_ctx_get_state(
    ordinal: hipDevice_t,
    flags: *mut c_uint,
    active: *mut c_int,
) -> hipError_t {
    entry("hipDevicePrimaryCtxGetState", || {
        let device = device::by_ordinal(ordinal).map_err(|_| hipError_t::hipErrorInvalidDevice)?;
        // SAFETY: each pointer is null and skipped, or has room for its value by the C caller's promise.
        unsafe {
            if !flags.is_null() {
                store(flags, 0)?;
            }
            if !active.is_null() {
                store(active, c_int::from(is_in_use(device)))?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_reset() -> hipError_t {
    entry("hipDeviceReset", || {
        // Streams, memory, flags and peers of the device go (hipamd/src/hip_device.cpp, `Device::Reset`).
        let device = device::current()?;
        stream::destroy_all(device);
        memory::free_all(device);
        device.forget_settings();
        Ok(())
    })
}
