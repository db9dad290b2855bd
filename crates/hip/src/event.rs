use std::ffi::c_uint;
use std::time::Duration;
use std::{fmt, ptr};

use hip_sys::{hipError_t, hipEvent_t};

use crate::call::{call, code};
use crate::{Device, Error, Result};

/// A mark in a stream: whether the work before it has completed, and when.
///
/// Recording it again moves the mark. Before the first record it counts as complete.
pub struct Event {
    device: Device,
    raw: hipEvent_t,
}

// SAFETY: an event is a handle without thread affinity; recording and querying it may come from any thread, as the
// streams it is recorded on may be used from any thread ("may be called from any host thread", `hipSetDevice`).
unsafe impl Send for Event {}
// SAFETY: as for `Send`; HIP keeps the mark behind a lock of its own.
unsafe impl Sync for Event {}

impl Device {
    /// A new event that can measure time.
    ///
    /// # Errors
    ///
    /// HIP could not create it.
    #[doc(alias = "hipEventCreateWithFlags")]
    pub fn event(&self) -> Result<Event> {
        Event::create(self, hip_sys::hipEventDefault)
    }
}

impl Event {
    pub(crate) fn create(device: &Device, flags: c_uint) -> Result<Self> {
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the flags are HIP's.
        unsafe {
            call!(
                device.runtime(),
                hipEventCreateWithFlags(&mut raw, flags),
                "hipEventCreateWithFlags({flags:#x}, device {})",
                device.ordinal()
            )?;
        }
        Ok(Self {
            device: device.clone(),
            raw,
        })
    }

    /// # Safety
    ///
    /// `raw` is an event of this device that no other code destroys.
    pub(crate) unsafe fn from_raw(device: &Device, raw: hipEvent_t) -> Self {
        Self {
            device: device.clone(),
            raw,
        }
    }

    /// The device this event belongs to.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The handle, valid while this event lives.
    #[must_use]
    pub fn raw(&self) -> hipEvent_t {
        self.raw
    }

    /// Waits until the work before the mark has completed.
    ///
    /// # Errors
    ///
    /// The work failed.
    #[doc(alias = "hipEventSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the handle is alive.
        unsafe {
            call!(
                self.device.runtime(),
                hipEventSynchronize(self.raw),
                "hipEventSynchronize()"
            )
        }
    }

    /// Whether the work before the mark has completed.
    ///
    /// # Errors
    ///
    /// The work failed.
    #[doc(alias = "hipEventQuery")]
    pub fn is_complete(&self) -> Result<bool> {
        self.device.make_current()?;
        // SAFETY: the handle is alive.
        match unsafe { code!(self.device.runtime(), hipEventQuery(self.raw)) }? {
            hipError_t::hipSuccess => Ok(true),
            hipError_t::hipErrorNotReady => {
                self.device.runtime().forget_last_error();
                Ok(false)
            }
            code => Err(self.device.runtime().failure(code, "hipEventQuery()".to_owned())),
        }
    }

    /// The device time from `earlier` to this event. Both must be complete, and made to measure time
    /// ([`Device::event`]).
    ///
    /// # Errors
    ///
    /// One of them is not complete or was never recorded, they belong to different devices, or `earlier` is the later
    /// one.
    #[doc(alias = "hipEventElapsedTime")]
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        self.device
            .check_same(&earlier.device, "Event::elapsed_since", "earlier")?;
        self.device.make_current()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one float to the address given; both handles are alive and of one device.
        unsafe {
            call!(
                self.device.runtime(),
                hipEventElapsedTime(&mut milliseconds, earlier.raw, self.raw),
                "hipEventElapsedTime()"
            )?;
        }
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).map_err(|_| Error::Answer {
            call: "hipEventElapsedTime",
            answer: format!("{milliseconds} ms"),
            expected: "a non-negative time: the event passed as the earlier one was recorded later",
        })
    }

    fn destroy(&self) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the handle is alive, and this is its last use. A wait that is queued stays valid: "the function will
        // return immediately and the [...] resources will be released later".
        unsafe { call!(self.device.runtime(), hipEventDestroy(self.raw), "hipEventDestroy()") }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Err(error) = self.destroy() {
            self.device.runtime().defer(error);
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("device", &self.device.ordinal())
            .field("raw", &self.raw)
            .finish()
    }
}
