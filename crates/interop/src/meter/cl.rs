//! The copy calls of OpenCL.
//!
//! Mapping counts as a copy of the mapped range: on a discrete device it is one, and counting it
//! everywhere keeps a measurement on a CPU honest.

use super::ledger::Ledger;
use super::slots::{self, Lease, Outcome, Slot, counted_table};
use clmgr::Api;
use opencl_sys::{cl_bool, cl_command_queue, cl_event, cl_int, cl_map_flags, cl_mem, cl_uint};
use std::ffi::c_void;
use std::sync::Arc;

impl Outcome for cl_int {
    const MISSING: Self = opencl_sys::CL_INVALID_OPERATION;

    fn is_success(&self) -> bool {
        *self == opencl_sys::CL_SUCCESS
    }
}

/// A mapping call hands back the address.
impl Outcome for *mut c_void {
    const MISSING: Self = std::ptr::null_mut();

    fn is_success(&self) -> bool {
        !self.is_null()
    }
}

/// # Safety
/// `region` points to three sizes or is null.
unsafe fn volume(region: *const usize) -> usize {
    if region.is_null() {
        return 0;
    }
    // SAFETY: three sizes, by this function's contract.
    unsafe { std::slice::from_raw_parts(region, 3) }
        .iter()
        .product()
}

counted_table! {
    64 slots: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
              32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63;

    clEnqueueReadBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, offset: usize, bytes: usize, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, bytes;
    clEnqueueWriteBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, offset: usize, bytes: usize, ptr: *const c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, bytes;
    clEnqueueCopyBuffer(queue: cl_command_queue, from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, bytes;
    clEnqueueSVMMemcpy(queue: cl_command_queue, blocking: cl_bool, dst: *mut c_void, src: *const c_void, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, bytes;
    clEnqueueSVMMap(queue: cl_command_queue, blocking: cl_bool, flags: cl_map_flags, ptr: *mut c_void, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int, bytes;
    clEnqueueMapBuffer(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, flags: cl_map_flags, offset: usize, bytes: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event, status: *mut cl_int) -> *mut c_void, bytes;
    clEnqueueReadBufferRect(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize, row: usize, slice: usize, host_row: usize, host_slice: usize, ptr: *mut c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
        // SAFETY: OpenCL accepted the call, so the region holds three sizes.
        unsafe { volume(region) };
    clEnqueueWriteBufferRect(queue: cl_command_queue, mem: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize, row: usize, slice: usize, host_row: usize, host_slice: usize, ptr: *const c_void, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
        // SAFETY: OpenCL accepted the call, so the region holds three sizes.
        unsafe { volume(region) };
    clEnqueueCopyBufferRect(queue: cl_command_queue, from: cl_mem, to: cl_mem, origin: *const usize, to_origin: *const usize, region: *const usize, row: usize, slice: usize, to_row: usize, to_slice: usize, waits: cl_uint, list: *const cl_event, event: *mut cl_event) -> cl_int,
        // SAFETY: OpenCL accepted the call, so the region holds three sizes.
        unsafe { volume(region) };
}
