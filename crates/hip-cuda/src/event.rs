//! Events: points in streams.

use std::ffi::c_uint;

use hip_sys::{
    hipError_t, hipEvent_t, hipEventBlockingSync, hipEventDisableSystemFence, hipEventDisableTiming,
    hipEventInterprocess, hipEventReleaseToDevice, hipEventReleaseToSystem, hipStream_t,
};

use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null};

/// Blocking, no timing and interprocess have CUDA's numbers; how far a release reaches is AMD's.
fn flags(hip: c_uint) -> Result<c_uint> {
    let shared = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
    let amds = hipEventDisableSystemFence | hipEventReleaseToDevice | hipEventReleaseToSystem;
    let both = hipEventReleaseToDevice | hipEventReleaseToSystem;
    if hip & !(shared | amds) != 0 || hip & both == both {
        return Err(INVALID);
    }
    // An event of several processes has no time (hipamd/src/hip_event.cpp, `ihipEventCreateWithFlags`).
    if hip & hipEventInterprocess != 0 && hip & hipEventDisableTiming == 0 {
        return Err(INVALID);
    }
    Ok(hip & shared)
}

fn create(out: *mut hipEvent_t, hip: c_uint) -> Result {
    not_null!(out);
    let flags = flags(hip)?;
    // SAFETY: not null; room for a handle by the C caller's promise.
    unsafe { here()?.cuEventCreate(out, flags) }
}

/// HIP's code for an invalid handle.
fn some(event: hipEvent_t) -> Result {
    if event.is_null() {
        return Err(hipError_t::hipErrorInvalidHandle);
    }
    Ok(())
}

calls! {
    pub(crate) fn fill;

    fn hipEventCreate(out: *mut hipEvent_t) {
        create(out, 0)
    }
    fn hipEventCreateWithFlags(out: *mut hipEvent_t, flags: c_uint) {
        create(out, flags)
    }
    fn hipEventDestroy(event: hipEvent_t) {
        some(event)?;
        here()?.cuEventDestroy_v2(event)
    }
    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) {
        some(event)?;
        here()?.cuEventRecord(event, stream)
    }
    fn hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint) {
        some(event)?;
        here()?.cuEventRecordWithFlags(event, stream, flags)
    }
    fn hipEventQuery(event: hipEvent_t) {
        some(event)?;
        here()?.cuEventQuery(event)
    }
    fn hipEventSynchronize(event: hipEvent_t) {
        some(event)?;
        here()?.cuEventSynchronize(event)
    }
    fn hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, end: hipEvent_t) {
        not_null!(milliseconds);
        some(start)?;
        some(end)?;
        here()?.cuEventElapsedTime(milliseconds, start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_amds_caches_are_taken_and_not_passed_on() {
        assert_eq!(
            flags(hipEventReleaseToSystem | hipEventDisableTiming),
            Ok(hipEventDisableTiming)
        );
        assert_eq!(flags(hipEventReleaseToSystem | hipEventReleaseToDevice), Err(INVALID));
        assert_eq!(flags(hipEventInterprocess), Err(INVALID));
        assert_eq!(flags(0x100), Err(INVALID));
    }
}
