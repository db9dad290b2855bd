//! What the device of a call can reach, and what the call will touch.
//!
//! A call begins with its handle, whose stream says which device computes. From then on the thread that makes the call
//! checks memory for that device, and keeps what it found until the work is put into the stream. The work itself checks
//! what an array of pointers names, on the stream's thread, for the same device.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

use hip_sys::hipError_t;

use crate::device::{self, Device};
use crate::error::Result;
use crate::memory::reach::reaches;
use crate::memory::registry::{self, Allocation};

#[derive(Default)]
struct Call {
    device: Option<&'static Device>,
    /// Not kept alive: a call that was refused, or that waits, leaves its list behind.
    touched: Vec<Weak<Allocation>>,
}

thread_local! {
    static CALL: RefCell<Call> = RefCell::default();
}

/// The thread's checks are for `device` from now on.
pub(super) fn begin(device: &'static Device) {
    CALL.set(Call {
        device: Some(device),
        touched: Vec::new(),
    });
}

/// The memory that was checked since the call began.
pub(super) fn touched() -> Vec<Arc<Allocation>> {
    let touched = CALL.take().touched;
    touched.iter().filter_map(Weak::upgrade).collect()
}

/// Checks that the call's device reaches all of a range.
///
/// # Errors
/// `hipErrorInvalidValue`: on ROCm the kernel faults, which ends the process.
pub(super) fn check(ptr: *const c_void, bytes: usize) -> Result {
    let allocation = registry::device_range(ptr as usize, bytes)?;
    CALL.with_borrow_mut(|call| {
        let device = match call.device {
            Some(device) => device,
            None => device::current()?,
        };
        if !reaches(device, &allocation) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        call.touched.push(Arc::downgrade(&allocation));
        Ok(())
    })
}

/// Runs the work of a call on the stream's thread.
pub(super) fn on_device<R>(device: &'static Device, work: impl FnOnce() -> R) -> R {
    begin(device);
    let result = work();
    drop(touched());
    result
}
