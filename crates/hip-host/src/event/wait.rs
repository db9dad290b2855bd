//! The calls that make a stream wait for an event.

use std::ffi::c_uint;

use hip_sys::{hipError_t, hipEvent_t, hipStream_t};

use super::point;
use crate::error::entry;
use crate::graph::capture;
use crate::stream;

pub(crate) unsafe extern "C" fn stream_wait_event(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t {
    entry("hipStreamWaitEvent", || {
        if event.is_null() {
            return Err(hipError_t::hipErrorInvalidHandle);
        }
        let found = stream::find(stream)?;
        if flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        if capture::join(&found, event)? {
            return Ok(());
        }
        let Some(point) = point(event)? else {
            // An event that was never recorded is complete.
            return Ok(());
        };
        point.hold("hipStreamWaitEvent", &found, Vec::new()).map(|_| ())
    })
}

/// As the call without `_spt`, with the thread's own stream for null.
pub(crate) unsafe extern "C" fn stream_wait_event_spt(
    stream: hipStream_t,
    event: hipEvent_t,
    flags: c_uint,
) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { stream_wait_event(stream::own(stream), event, flags) }
}
