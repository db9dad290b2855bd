//! Devices, and the context that each thread works in.

mod attributes;
pub(crate) mod calls;
pub(crate) mod peer;
mod properties;
pub(crate) mod settings;

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

use hip_sys::{hipDevice_t, hipError_t, hipStream_t};

use crate::cuda::cu;
use crate::cuda::driver::{Context, Driver};
use crate::error::Result;

/// One GPU.
pub(crate) struct Device {
    pub(crate) ordinal: c_int,
    /// The driver's number for it.
    pub(crate) cu: hipDevice_t,
    /// Its primary context, retained when first used and kept: other CUDA code of the process shares it.
    context: OnceLock<Shared>,
}

/// A context belongs to no thread.
struct Shared(Context);
// SAFETY: a handle that the driver locks itself ("the CUDA driver API is thread-safe").
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl Device {
    pub(crate) fn context(&self) -> Result<Context> {
        if let Some(context) = self.context.get() {
            return Ok(context.0);
        }
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle to the address given. A second thread that gets here too retains it twice, which
        // only keeps it longer.
        unsafe { cu()?.cuDevicePrimaryCtxRetain(&mut context, self.cu) }?;
        Ok(self.context.get_or_init(|| Shared(context)).0)
    }
}

/// All devices that the driver shows.
pub(crate) fn all() -> Result<&'static [Device]> {
    static DEVICES: OnceLock<std::result::Result<Vec<Device>, hipError_t>> = OnceLock::new();
    let devices = DEVICES.get_or_init(|| {
        let driver = cu()?;
        let mut count = 0;
        // SAFETY: writes one int to the address given.
        unsafe { driver.cuDeviceGetCount(&mut count) }?;
        (0..count)
            .map(|ordinal| {
                let mut device = 0;
                // SAFETY: writes one int to the address given; the ordinal is below the count.
                unsafe { driver.cuDeviceGet(&mut device, ordinal) }?;
                Ok(Device {
                    ordinal,
                    cu: device,
                    context: OnceLock::new(),
                })
            })
            .collect()
    });
    match devices {
        Ok(devices) if devices.is_empty() => Err(hipError_t::hipErrorNoDevice),
        Ok(devices) => Ok(devices),
        Err(code) => Err(*code),
    }
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread's device.
pub(crate) fn current() -> Result<&'static Device> {
    all()?.get(CURRENT.get()).ok_or(hipError_t::hipErrorNoDevice)
}

fn set_current(device: &Device) {
    CURRENT.set(usize::try_from(device.ordinal).unwrap_or(0));
}

pub(crate) fn by_ordinal(ordinal: c_int) -> Result<&'static Device> {
    let devices = all()?;
    usize::try_from(ordinal)
        .ok()
        .and_then(|ordinal| devices.get(ordinal))
        .ok_or(hipError_t::hipErrorInvalidDevice)
}

/// The driver, with the context of the thread's device made current.
///
/// It is set on every call, not remembered: other CUDA code in the thread may have set another. In HIP every thread has
/// a device, so here too.
pub(crate) fn here() -> Result<&'static Driver> {
    let driver = cu()?;
    let context = current()?.context()?;
    // SAFETY: a context that is retained for good.
    unsafe { driver.cuCtxSetCurrent(context) }?;
    Ok(driver)
}

/// The device that a stream belongs to; the null stream and the thread's own stream belong to the current one.
///
/// # Safety
/// `stream` is null, one of the two special handles, or a live stream.
pub(crate) unsafe fn of_stream(stream: hipStream_t) -> Result<&'static Device> {
    // The legacy stream and the thread's stream are small numbers, the same in both APIs.
    if stream.addr() <= 2 {
        return current();
    }
    let mut context = ptr::null_mut();
    // SAFETY: a live stream by this function's contract; writes one handle to the address given.
    unsafe { here()?.cuStreamGetCtx(stream, &mut context) }?;
    all()?
        .iter()
        .find(|device| device.context.get().is_some_and(|own| own.0 == context))
        .ok_or(hipError_t::hipErrorInvalidContext)
}
