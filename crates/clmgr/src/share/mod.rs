//! Memory and semaphores that cross API and process borders by file descriptor.
//!
//! | extension | what it provides |
//! |---|---|
//! | `cl_khr_external_memory` and a handle type | [`ImportedBuffer`] |
//! | `cl_khr_semaphore` | [`Semaphore`] within OpenCL |
//! | `cl_khr_external_semaphore` and a handle type | its import and export |
//!
//! ROCm's OpenCL and the processors' have none of them. What is missing is refused by name, and
//! nothing else is done instead.

mod memory;
mod semaphore;

use std::ffi::{CStr, c_void};

pub use memory::{AcquiredBuffer, ImportedBuffer};
pub use semaphore::Semaphore;

use crate::device::Device;
use crate::error::{Error, Result};

/// The error that the device cannot do something, and why.
fn refused(device: &Device, what: impl Into<String>, reason: impl Into<String>) -> Error {
    Error::NotSupported {
        what: what.into(),
        device: device.name().to_owned(),
        reason: reason.into(),
    }
}

/// Checks that the device reports an extension.
fn require(device: &Device, what: &str, extension: &str) -> Result<()> {
    if device.has_extension(extension) {
        return Ok(());
    }
    Err(refused(device, what, format!("it lacks `{extension}`")))
}

/// The function of an extension that the device reports.
///
/// # Safety
///
/// `F` is the `Option` of the function pointer that the extension gives this name.
unsafe fn function<F>(device: &Device, name: &CStr) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = device.extension_function(name).ok_or_else(|| {
        refused(
            device,
            format!("`{}`", name.to_string_lossy()),
            "its platform reports the extension but does not provide the function",
        )
    })?;
    // SAFETY: the address is that of this function, by the caller's promise and the platform's; it
    // is not null, and both have the size of a pointer.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
}
