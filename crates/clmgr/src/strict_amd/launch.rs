//! Kernels and their order.

use std::ffi::c_void;

use opencl_sys::{
    cl_bitfield, cl_bool, cl_command_queue, cl_event, cl_int, cl_kernel, cl_kernel_exec_info, cl_map_flags, cl_mem,
    cl_uint,
};

use super::{forward, orders, put, real};
use crate::api::Api;

pub(super) fn install<const LANE: usize>(api: &mut Api) {
    put! { api:
        clSetKernelArg => set_arg::<LANE>;
        clSetKernelArgSVMPointer => set_arg_pointer::<LANE>;
        clSetKernelExecInfo => set_exec_info::<LANE>;
        clReleaseKernel => release_kernel::<LANE>;
        clEnqueueNDRangeKernel => enqueue_kernel::<LANE>;
        clEnqueueReadBuffer => read_buffer::<LANE>;
        clEnqueueMapBuffer => map_buffer::<LANE>;
        clEnqueueSVMMemcpy => svm_copy::<LANE>;
        clFinish => finish::<LANE>;
        clWaitForEvents => wait_for_events::<LANE>;
    }
}

/// Whether a kernel may write what this argument points at; yes where the compiler does not tell.
fn writes<const LANE: usize>(kernel: cl_kernel, index: cl_uint) -> bool {
    let mut qualifier: cl_bitfield = 0;
    let what = opencl_sys::CL_KERNEL_ARG_TYPE_QUALIFIER;
    let place = (&raw mut qualifier).cast();
    let none = std::ptr::null_mut();
    let code = forward!(LANE.clGetKernelArgInfo(kernel, index, what, size_of::<cl_bitfield>(), place, none));
    code != opencl_sys::CL_SUCCESS || qualifier & cl_bitfield::from(opencl_sys::CL_KERNEL_ARG_TYPE_CONST) == 0
}

unsafe extern "C" fn set_arg<const LANE: usize>(
    kernel: cl_kernel,
    index: cl_uint,
    size: usize,
    value: *const c_void,
) -> cl_int {
    let code = forward!(LANE.clSetKernelArg(kernel, index, size, value));
    if code == opencl_sys::CL_SUCCESS {
        let handle = (size == size_of::<usize>() && !value.is_null())
            // SAFETY: the driver took `size` bytes from there; they need not be aligned.
            .then(|| unsafe { value.cast::<usize>().read_unaligned() });
        let writes = writes::<LANE>(kernel, index);
        orders::<LANE, _>(|orders| orders.set_value(kernel.addr(), index, handle, writes));
    }
    code
}

unsafe extern "C" fn set_arg_pointer<const LANE: usize>(
    kernel: cl_kernel,
    index: cl_uint,
    pointer: *const c_void,
) -> cl_int {
    let code = forward!(LANE.clSetKernelArgSVMPointer(kernel, index, pointer));
    if code == opencl_sys::CL_SUCCESS {
        let writes = writes::<LANE>(kernel, index);
        let address = pointer.addr();
        orders::<LANE, _>(|orders| orders.set_pointer(kernel.addr(), index, address, writes));
    }
    code
}

unsafe extern "C" fn set_exec_info<const LANE: usize>(
    kernel: cl_kernel,
    what: cl_kernel_exec_info,
    size: usize,
    value: *const c_void,
) -> cl_int {
    let code = forward!(LANE.clSetKernelExecInfo(kernel, what, size, value));
    if code == opencl_sys::CL_SUCCESS && what == opencl_sys::CL_KERNEL_EXEC_INFO_SVM_PTRS {
        let count = size / size_of::<usize>();
        let addresses: Vec<usize> = (0..count)
            // SAFETY: the driver took a list of `size` bytes from there.
            .map(|index| unsafe { value.cast::<usize>().add(index).read_unaligned() })
            .collect();
        orders::<LANE, _>(|orders| orders.set_list(kernel.addr(), &addresses));
    }
    code
}

unsafe extern "C" fn release_kernel<const LANE: usize>(kernel: cl_kernel) -> cl_int {
    orders::<LANE, _>(|orders| orders.forget_kernel(kernel.addr()));
    forward!(LANE.clReleaseKernel(kernel))
}

unsafe extern "C" fn enqueue_kernel<const LANE: usize>(
    queue: cl_command_queue,
    kernel: cl_kernel,
    dims: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    // On ROCm the call succeeds and the event ends with this code.
    if orders::<LANE, _>(|orders| orders.is_poisoned(kernel.addr())) {
        return opencl_sys::CL_INVALID_OPERATION;
    }
    let code = forward!(LANE.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, waits, list, event));
    if code == opencl_sys::CL_SUCCESS {
        // SAFETY: the driver wrote the event where it was wanted.
        let event = (!event.is_null()).then(|| unsafe { *event }.addr());
        let event = event.unwrap_or(0);
        orders::<LANE, _>(|orders| orders.dispatch(queue.addr(), kernel.addr(), event));
    }
    code
}

unsafe extern "C" fn finish<const LANE: usize>(queue: cl_command_queue) -> cl_int {
    let code = forward!(LANE.clFinish(queue));
    if code == opencl_sys::CL_SUCCESS {
        orders::<LANE, _>(|orders| orders.drained(queue.addr()));
    }
    code
}

unsafe extern "C" fn wait_for_events<const LANE: usize>(count: cl_uint, list: *const cl_event) -> cl_int {
    let Some(wait) = real::<LANE>().clWaitForEvents else {
        return opencl_sys::CL_INVALID_OPERATION;
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let code = unsafe { wait(count, list) };
    if code == opencl_sys::CL_SUCCESS {
        let events: Vec<usize> = (0..count as usize)
            // SAFETY: the driver took `count` events from there.
            .map(|index| unsafe { *list.add(index) }.addr())
            .collect();
        orders::<LANE, _>(|orders| orders.ended(&events));
    }
    code
}

/// Notes that a blocking call has waited for everything before it.
fn waited<const LANE: usize>(queue: cl_command_queue, blocking: cl_bool, well: bool) {
    if well && blocking != 0 {
        orders::<LANE, _>(|orders| orders.drained(queue.addr()));
    }
}

unsafe extern "C" fn read_buffer<const LANE: usize>(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    offset: usize,
    bytes: usize,
    host: *mut c_void,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let code = forward!(LANE.clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, host, waits, list, event));
    waited::<LANE>(queue, blocking, code == opencl_sys::CL_SUCCESS);
    code
}

unsafe extern "C" fn map_buffer<const LANE: usize>(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    flags: cl_map_flags,
    offset: usize,
    bytes: usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
    code: *mut cl_int,
) -> *mut c_void {
    let Some(map) = real::<LANE>().clEnqueueMapBuffer else {
        return std::ptr::null_mut();
    };
    // SAFETY: the caller's arguments, for the function they were meant for.
    let pointer = unsafe { map(queue, buffer, blocking, flags, offset, bytes, waits, list, event, code) };
    waited::<LANE>(queue, blocking, !pointer.is_null());
    pointer
}

unsafe extern "C" fn svm_copy<const LANE: usize>(
    queue: cl_command_queue,
    blocking: cl_bool,
    target: *mut c_void,
    source: *const c_void,
    bytes: usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let code = forward!(LANE.clEnqueueSVMMemcpy(queue, blocking, target, source, bytes, waits, list, event));
    waited::<LANE>(queue, blocking, code == opencl_sys::CL_SUCCESS);
    code
}
