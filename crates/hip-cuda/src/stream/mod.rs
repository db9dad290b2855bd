//! Streams.

pub(crate) mod value;

use std::ffi::{c_int, c_uint, c_void};

use hip_sys::{hipEvent_t, hipHostFn_t, hipStream_t, hipStreamCallback_t};

use crate::code;
use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null};

fn create(out: *mut hipStream_t, flags: c_uint, priority: c_int) -> Result {
    not_null!(out);
    // Blocking (0) and non-blocking (1) have CUDA's numbers.
    if flags & !hip_sys::hipStreamNonBlocking != 0 {
        return Err(INVALID);
    }
    // SAFETY: not null; room for a handle by the C caller's promise.
    unsafe { here()?.cuStreamCreateWithPriority(out, flags, priority) }
}

/// The state of a HIP callback behind a CUDA callback: the code arrives in CUDA's numbers.
struct Callback {
    function: unsafe extern "C" fn(hipStream_t, hip_sys::hipError_t, *mut c_void),
    data: *mut c_void,
}

unsafe extern "C" fn call_back(stream: hipStream_t, status: c_uint, callback: *mut c_void) {
    // SAFETY: `hipStreamAddCallback` made the box for this one call.
    let callback = unsafe { Box::from_raw(callback.cast::<Callback>()) };
    // SAFETY: the C caller gave a function that takes these.
    unsafe { (callback.function)(stream, code::of(status), callback.data) };
}

calls! {
    pub(crate) fn fill;

    fn hipStreamCreate(out: *mut hipStream_t) {
        create(out, 0, 0)
    }
    fn hipStreamCreateWithFlags(out: *mut hipStream_t, flags: c_uint) {
        create(out, flags, 0)
    }
    fn hipStreamCreateWithPriority(out: *mut hipStream_t, flags: c_uint, priority: c_int) {
        create(out, flags, priority)
    }
    /// Queued work still runs; only the handle goes. The default streams cannot be destroyed.
    fn hipStreamDestroy(stream: hipStream_t) {
        if stream.addr() <= 2 {
            return Err(hip_sys::hipError_t::hipErrorInvalidHandle);
        }
        here()?.cuStreamDestroy_v2(stream)
    }
    fn hipStreamSynchronize(stream: hipStream_t) {
        here()?.cuStreamSynchronize(stream)
    }
    fn hipStreamQuery(stream: hipStream_t) {
        here()?.cuStreamQuery(stream)
    }
    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) {
        if event.is_null() {
            return Err(hip_sys::hipError_t::hipErrorInvalidHandle);
        }
        if flags != 0 {
            return Err(INVALID);
        }
        here()?.cuStreamWaitEvent(stream, event, 0)
    }
    fn hipStreamGetFlags(stream: hipStream_t, out: *mut c_uint) {
        not_null!(out);
        here()?.cuStreamGetFlags(stream, out)
    }
    fn hipStreamGetPriority(stream: hipStream_t, out: *mut c_int) {
        not_null!(out);
        here()?.cuStreamGetPriority(stream, out)
    }
    fn hipLaunchHostFunc(stream: hipStream_t, function: hipHostFn_t, data: *mut c_void) {
        if function.is_none() {
            return Err(INVALID);
        }
        here()?.cuLaunchHostFunc(stream, function, data)
    }
    fn hipStreamAddCallback(stream: hipStream_t, function: hipStreamCallback_t, data: *mut c_void, flags: c_uint) {
        let Some(function) = function else {
            return Err(INVALID);
        };
        if flags != 0 {
            return Err(INVALID);
        }
        let driver = here()?;
        let callback = Box::into_raw(Box::new(Callback { function, data })).cast::<c_void>();
        driver.cuStreamAddCallback(stream, Some(call_back), callback, 0).inspect_err(|_| {
            // Refused, so never called: the box is still ours.
            drop(Box::from_raw(callback.cast::<Callback>()));
        })
    }
}
