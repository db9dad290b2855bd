//! Functions of the program that a stream calls.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use hip_sys::{hipError_t, hipStream_t, hipStreamCallback_t};

use super::{find, own};
use crate::error::{entry, in_callback};
use crate::work::Work;

/// The user's data pointer of a host function, on its way to the stream's thread.
#[derive(Clone, Copy)]
pub(crate) struct UserData(pub(crate) *mut c_void);
// SAFETY: the pointer is never used by us; by the API's contract the user's function may receive it on any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    pub(crate) fn get(&self) -> *mut c_void {
        self.0
    }
}

/// A function of the program and what it is called with.
#[derive(Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) user: UserData,
}

impl HostCall {
    pub(crate) fn run(&self) {
        // SAFETY: the caller that gave the function promised that it may be called with this pointer in stream order.
        in_callback(|| unsafe { (self.function)(self.user.get()) });
    }
}

pub(crate) unsafe extern "C" fn stream_add_callback(
    stream: hipStream_t,
    callback: hipStreamCallback_t,
    user: *mut c_void,
    flags: c_uint,
) -> hipError_t {
    entry("hipStreamAddCallback", || {
        let callback = callback.ok_or(hipError_t::hipErrorInvalidValue)?;
        if flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let found = find(stream)?;
        let user = UserData(user);
        let handle = stream as usize;
        let queue = Arc::downgrade(&found);
        let work: Work = Box::new(move || {
            let status = queue
                .upgrade()
                .and_then(|queue| queue.outcome().err())
                .unwrap_or(hipError_t::hipSuccess);
            // SAFETY: the C caller promises that `callback` may be called with these arguments when the stream gets
            // there.
            in_callback(|| unsafe { callback(handle as hipStream_t, status, user.get()) });
            Ok(())
        });
        found
            .submit_waiting("hipStreamAddCallback", Vec::new(), work)
            .map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn stream_add_callback_spt(
    stream: hipStream_t,
    callback: hipStreamCallback_t,
    user: *mut c_void,
    flags: c_uint,
) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { stream_add_callback(own(stream), callback, user, flags) }
}
