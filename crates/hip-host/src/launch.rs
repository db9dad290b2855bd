//! The calls that launch kernels, and functions of the program.

use std::ffi::{c_uint, c_void};

use hip_sys::{hipError_t, hipFunction_t, hipHostFn_t, hipStream_t};

use crate::error::entry;
use crate::graph::Operation;
use crate::kernel::Kernel;
use crate::stream::{self, HostCall, UserData};

#[allow(clippy::too_many_arguments, reason = "the C signature")]
pub(crate) unsafe extern "C" fn module_launch_kernel(
    function: hipFunction_t,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: hipStream_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    const CALL: &str = "hipModuleLaunchKernel";
    entry(CALL, || {
        let stream = stream::find(stream)?;
        let sizes = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        // SAFETY: HIP asks the C caller for a pointer to a value for each of the kernel's parameters, or for an ended
        // list of pairs.
        let kernel = unsafe { Kernel::read(function, sizes, shared_bytes, params, extra) }?;
        kernel.check_reach(stream.device())?;
        stream.issue(CALL, Operation::Kernel(kernel)).map(|_| ())
    })
}

#[allow(clippy::too_many_arguments, reason = "the C signature")]
pub(crate) unsafe extern "C" fn module_launch_cooperative_kernel(
    function: hipFunction_t,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: hipStream_t,
    params: *mut *mut c_void,
) -> hipError_t {
    const CALL: &str = "hipModuleLaunchCooperativeKernel";
    entry(CALL, || {
        let stream = stream::find(stream)?;
        let sizes = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let extra = std::ptr::null_mut();
        // SAFETY: HIP asks the C caller for a pointer to a value for each of the kernel's parameters.
        let kernel = unsafe { Kernel::read(function, sizes, shared_bytes, params, extra) }?;
        let kernel = kernel.into_cooperative()?;
        kernel.check_reach(stream.device())?;
        stream.issue(CALL, Operation::Kernel(kernel)).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn launch_host_func(
    stream: hipStream_t,
    function: hipHostFn_t,
    user: *mut c_void,
) -> hipError_t {
    entry("hipLaunchHostFunc", || {
        let found = stream::find(stream)?;
        let function = function.ok_or(hipError_t::hipErrorInvalidValue)?;
        let call = HostCall {
            function,
            user: UserData(user),
        };
        found.issue("hipLaunchHostFunc", Operation::Host(call)).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn launch_host_func_spt(
    stream: hipStream_t,
    function: hipHostFn_t,
    user: *mut c_void,
) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { launch_host_func(stream::own(stream), function, user) }
}
