//! Drivers that export no OpenCL function but the ICD entry points.
//!
//! The extension `cl_khr_icd` says how a loader reaches such a driver: `clIcdGetPlatformIDsKHR`
//! gives its platforms, and the first field of every object points at the table of functions.

use std::ffi::{CStr, c_char, c_void};

use opencl_sys::cl_icd::_cl_icd_dispatch as Dispatch;
use opencl_sys::{cl_int, cl_platform_id, cl_uint};

use crate::api::Api;
use crate::handle::Handle;
use crate::loader::collect_platforms;

type GetPlatforms = unsafe extern "C" fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int;
type GetAddress = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// The platforms of a driver, each with the table that its objects carry.
pub(crate) fn open(
    exported: &Api,
    resolve: &dyn Fn(&CStr) -> Option<*mut c_void>,
    hook: &dyn Fn(&mut Api),
) -> Result<Vec<(Handle, Api)>, String> {
    const ENTRY: &CStr = c"clIcdGetPlatformIDsKHR";
    let address = resolve(ENTRY).or_else(|| {
        let lookup = resolve(c"clGetExtensionFunctionAddress")?;
        // SAFETY: a library that exports this name is an OpenCL driver, and this is its signature.
        let lookup = unsafe { std::mem::transmute::<*mut c_void, GetAddress>(lookup) };
        // SAFETY: the name is a C string; the driver only reads it.
        let address = unsafe { lookup(ENTRY.as_ptr()) };
        (!address.is_null()).then_some(address)
    });
    let Some(address) = address else {
        return Err("it exports neither clGetPlatformIDs nor clIcdGetPlatformIDsKHR".to_owned());
    };
    // SAFETY: `cl_khr_icd` gives this name this signature.
    let get = unsafe { std::mem::transmute::<*mut c_void, GetPlatforms>(address) };
    let platforms = collect_platforms("clIcdGetPlatformIDsKHR", |entries, ids, count| {
        // SAFETY: `ids` is null with `entries` zero, or has room for `entries` handles; `count` is
        // a valid place.
        unsafe { get(entries, ids, count) }
    })
    .map_err(|error| error.to_string())?;
    if platforms.is_empty() {
        return Err("it knows no platform".to_owned());
    }
    Ok(platforms
        .into_iter()
        .map(|platform| {
            // SAFETY: `cl_khr_icd`: "Every OpenCL object … must have a pointer to its dispatch
            // table as its first field", and the platform is such an object of this driver.
            let mut api = unsafe { table_of(platform, exported) };
            hook(&mut api);
            (platform, api)
        })
        .collect())
}

/// Reads the dispatch table of a platform.
///
/// The table of an old driver ends where its OpenCL version ended, so that no field is read before
/// the version that brought it is known to be there.
///
/// # Safety
///
/// `platform` is a platform of a driver with `cl_khr_icd`.
unsafe fn table_of(platform: Handle, exported: &Api) -> Api {
    let mut api = *exported;
    // SAFETY: the caller's promise: the first field is the pointer to the table.
    let table: *const Dispatch = unsafe { *platform.0.cast::<*const Dispatch>() };
    macro_rules! take {
        ($($name:ident)*) => {
            // SAFETY: the field lies within the table, by its version, and is read as a copy.
            $(api.$name = unsafe { (&raw const (*table).$name).read() };)*
        };
    }
    take! {
        clGetPlatformInfo clGetDeviceIDs clGetDeviceInfo clCreateContext clRetainContext
        clReleaseContext clGetContextInfo clCreateCommandQueue clRetainCommandQueue
        clReleaseCommandQueue clGetCommandQueueInfo clCreateBuffer clRetainMemObject
        clReleaseMemObject clGetMemObjectInfo clCreateProgramWithSource
        clCreateProgramWithBinary clReleaseProgram clBuildProgram clGetProgramInfo
        clGetProgramBuildInfo clCreateKernel clReleaseKernel clSetKernelArg clGetKernelInfo
        clGetKernelWorkGroupInfo clWaitForEvents clGetEventInfo clRetainEvent clReleaseEvent
        clGetEventProfilingInfo clFlush clFinish clEnqueueReadBuffer clEnqueueWriteBuffer
        clEnqueueCopyBuffer clEnqueueMapBuffer clEnqueueUnmapMemObject clEnqueueNDRangeKernel
    }
    let version = crate::device::platform_version(&api, platform)
        .ok()
        .and_then(|text| crate::device::version_numbers(&text))
        .unwrap_or((1, 0));
    if version >= (1, 1) {
        take! {
            clSetEventCallback clCreateSubBuffer clSetMemObjectDestructorCallback
            clCreateUserEvent clSetUserEventStatus clEnqueueReadBufferRect
            clEnqueueWriteBufferRect clEnqueueCopyBufferRect
        }
    }
    if version >= (1, 2) {
        take! {
            clGetKernelArgInfo clEnqueueFillBuffer clEnqueueMigrateMemObjects
            clEnqueueMarkerWithWaitList clEnqueueBarrierWithWaitList
            clGetExtensionFunctionAddressForPlatform
        }
    }
    if version >= (2, 0) {
        take! {
            clSVMAlloc clSVMFree clEnqueueSVMFree clEnqueueSVMMemcpy clEnqueueSVMMemFill
            clEnqueueSVMMap clEnqueueSVMUnmap clSetKernelArgSVMPointer clSetKernelExecInfo
        }
    }
    if version >= (2, 1) {
        take! { clEnqueueSVMMigrateMem }
    }
    if version >= (3, 0) {
        take! { clCreateBufferWithProperties }
    }
    api
}
