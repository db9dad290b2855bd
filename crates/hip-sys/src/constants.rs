//! Constants whose macro is a cast expression, which the generator leaves out.

#![allow(non_upper_case_globals)]

use core::ffi::c_int;

use crate::types::{hipStream_t, ihipStream_t};

/// The host, where a device number is expected.
pub const hipCpuDeviceId: c_int = -1;
/// No device.
pub const hipInvalidDeviceId: c_int = -2;
/// The null stream with its implicit ordering against all blocking streams.
pub const hipStreamLegacy: hipStream_t = core::ptr::without_provenance_mut::<ihipStream_t>(1);
/// The calling thread's own default stream.
pub const hipStreamPerThread: hipStream_t = core::ptr::without_provenance_mut::<ihipStream_t>(2);
