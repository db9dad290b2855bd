//! What amdocl refuses to create, and what it does with memory it does not know.

use std::ffi::{CStr, c_char, c_void};

use opencl_sys::{
    cl_bool, cl_buffer_create_type, cl_command_queue, cl_command_queue_properties, cl_context, cl_context_properties,
    cl_device_id, cl_event, cl_int, cl_map_flags, cl_mem, cl_mem_flags, cl_program, cl_svm_mem_flags, cl_uint,
};

use super::order::{HazardKind, Memory};
use super::{forward, orders, put, real};
use crate::api::Api;

pub(super) fn install<const LANE: usize>(api: &mut Api) {
    put! { api:
        clCreateContext => create_context::<LANE>;
        clCreateCommandQueue => create_queue::<LANE>;
        clCreateBuffer => create_buffer::<LANE>;
        clCreateSubBuffer => create_sub_buffer::<LANE>;
        clBuildProgram => build_program::<LANE>;
        clSVMAlloc => svm_alloc::<LANE>;
        clSVMFree => svm_free::<LANE>;
        clEnqueueSVMMemFill => svm_fill::<LANE>;
        clEnqueueSVMMap => svm_map::<LANE>;
    }
}

/// Writes a code where the caller wants one, and returns the matching null.
///
/// # Safety
///
/// `code` is null or a place for a code.
unsafe fn refuse(value: cl_int, code: *mut cl_int) -> *mut c_void {
    if !code.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *code = value };
    }
    std::ptr::null_mut()
}

type Notify = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;

unsafe extern "C" fn create_context<const LANE: usize>(
    properties: *const cl_context_properties,
    count: cl_uint,
    devices: *const cl_device_id,
    notify: Notify,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    let Some(create) = real::<LANE>().clCreateContext else {
        // SAFETY: the caller's place.
        return unsafe { refuse(opencl_sys::CL_INVALID_OPERATION, code) };
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let context = unsafe { create(properties, count, devices, notify, data, code) };
    if count > 1 && !context.is_null() {
        orders::<LANE, _>(|orders| orders.note(HazardKind::SeveralDevices, context.addr()));
    }
    context
}

unsafe extern "C" fn create_queue<const LANE: usize>(
    context: cl_context,
    device: cl_device_id,
    properties: cl_command_queue_properties,
    code: *mut cl_int,
) -> cl_command_queue {
    // clr: rocclr/device/rocm/rocdevice.cpp: the queues of the host can profile and nothing else.
    let create = real::<LANE>().clCreateCommandQueue;
    if properties & !opencl_sys::CL_QUEUE_PROFILING_ENABLE != 0 {
        // SAFETY: the caller's place.
        return unsafe { refuse(opencl_sys::CL_INVALID_QUEUE_PROPERTIES, code) };
    }
    match create {
        // SAFETY: the caller's arguments, for the function they were meant for.
        Some(create) => unsafe { create(context, device, properties, code) },
        // SAFETY: the caller's place.
        None => unsafe { refuse(opencl_sys::CL_INVALID_OPERATION, code) },
    }
}

unsafe extern "C" fn create_buffer<const LANE: usize>(
    context: cl_context,
    flags: cl_mem_flags,
    bytes: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let Some(create) = real::<LANE>().clCreateBuffer else {
        // SAFETY: the caller's place.
        return unsafe { refuse(opencl_sys::CL_INVALID_OPERATION, code) };
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let buffer = unsafe { create(context, flags, bytes, host, code) };
    if !buffer.is_null() {
        let in_place = flags & opencl_sys::CL_MEM_USE_HOST_PTR != 0;
        let host = if in_place { host.addr() } else { 0 };
        orders::<LANE, _>(|orders| orders.add_object(buffer.addr(), host));
    }
    buffer
}

unsafe extern "C" fn create_sub_buffer<const LANE: usize>(
    whole: cl_mem,
    flags: cl_mem_flags,
    kind: cl_buffer_create_type,
    region: *const c_void,
    code: *mut cl_int,
) -> cl_mem {
    let Some(create) = real::<LANE>().clCreateSubBuffer else {
        // SAFETY: the caller's place.
        return unsafe { refuse(opencl_sys::CL_INVALID_OPERATION, code) };
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let part = unsafe { create(whole, flags, kind, region, code) };
    if !part.is_null() {
        orders::<LANE, _>(|orders| orders.add_part(part.addr(), whole.addr()));
    }
    part
}

type BuildCallback = Option<unsafe extern "C" fn(cl_program, *mut c_void)>;

unsafe extern "C" fn build_program<const LANE: usize>(
    program: cl_program,
    count: cl_uint,
    devices: *const cl_device_id,
    options: *const c_char,
    built: BuildCallback,
    data: *mut c_void,
) -> cl_int {
    // SAFETY: null, or a C string by the specification.
    let text = (!options.is_null()).then(|| unsafe { CStr::from_ptr(options) });
    // AMD's compiler refuses OpenCL C 3.0; with which code was not seen.
    if text.is_some_and(|text| text.to_string_lossy().contains("-cl-std=CL3")) {
        return opencl_sys::CL_INVALID_BUILD_OPTIONS;
    }
    forward!(LANE.clBuildProgram(program, count, devices, options, built, data))
}

unsafe extern "C" fn svm_alloc<const LANE: usize>(
    context: cl_context,
    flags: cl_svm_mem_flags,
    bytes: usize,
    alignment: cl_uint,
) -> *mut c_void {
    // clr: opencl/amdocl/cl_svm.cpp: null, since no device reports atomics.
    if flags & opencl_sys::CL_MEM_SVM_ATOMICS != 0 {
        return std::ptr::null_mut();
    }
    let Some(alloc) = real::<LANE>().clSVMAlloc else {
        return std::ptr::null_mut();
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let start = unsafe { alloc(context, flags, bytes, alignment) };
    if !start.is_null() {
        orders::<LANE, _>(|orders| orders.add_shared(start.addr(), bytes));
    }
    start
}

unsafe extern "C" fn svm_free<const LANE: usize>(context: cl_context, start: *mut c_void) {
    orders::<LANE, _>(|orders| orders.remove_shared(start.addr()));
    if let Some(free) = real::<LANE>().clSVMFree {
        // SAFETY: the caller's arguments, for the function they were meant for.
        unsafe { free(context, start) };
    }
}

/// Whether amdocl would dereference null on this address; noted if so.
fn would_crash<const LANE: usize>(address: *mut c_void) -> bool {
    orders::<LANE, _>(|orders| match orders.memory_at(address.addr()) {
        Memory::Known(_) => false,
        Memory::Foreign(at) => {
            orders.note(HazardKind::Crash, at);
            true
        }
    })
}

unsafe extern "C" fn svm_fill<const LANE: usize>(
    queue: cl_command_queue,
    target: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    bytes: usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    if would_crash::<LANE>(target) {
        return opencl_sys::CL_INVALID_VALUE;
    }
    forward!(LANE.clEnqueueSVMMemFill(queue, target, pattern, pattern_size, bytes, waits, list, event))
}

unsafe extern "C" fn svm_map<const LANE: usize>(
    queue: cl_command_queue,
    blocking: cl_bool,
    flags: cl_map_flags,
    start: *mut c_void,
    bytes: usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    if would_crash::<LANE>(start) {
        return opencl_sys::CL_INVALID_VALUE;
    }
    let code = forward!(LANE.clEnqueueSVMMap(queue, blocking, flags, start, bytes, waits, list, event));
    if code == opencl_sys::CL_SUCCESS && blocking != 0 {
        orders::<LANE, _>(|orders| orders.drained(queue.addr()));
    }
    code
}
