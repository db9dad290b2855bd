//! How amdocl answers queries, and what it refuses.

use std::ffi::{c_char, c_void};

use opencl_sys::{
    CL_INVALID_VALUE, CL_SUCCESS, cl_device_id, cl_device_info, cl_int, cl_mem, cl_mem_info, cl_platform_id,
    cl_platform_info,
};

use super::{forward, put};
use crate::api::Api;

/// clr: rocclr/device/rocm/rocdevice.cpp.
const DEVICE_VERSION: &[u8] = b"OpenCL 2.0 \0";
const LANGUAGE_VERSION: &[u8] = b"OpenCL C 2.0 \0";
/// clr: rocclr/device/rocm/rocsettings.cpp and rocclr/device/device.cpp.
const DEVICE_EXTENSIONS: &[u8] = b"cl_khr_fp64 cl_khr_global_int32_base_atomics \
cl_khr_global_int32_extended_atomics cl_khr_local_int32_base_atomics \
cl_khr_local_int32_extended_atomics cl_khr_int64_base_atomics cl_khr_int64_extended_atomics \
cl_khr_3d_image_writes cl_khr_byte_addressable_store cl_khr_fp16 cl_amd_device_attribute_query \
cl_amd_media_ops cl_amd_media_ops2 cl_khr_image2d_from_buffer cl_khr_subgroups \
cl_khr_depth_images cl_amd_copy_buffer_p2p cl_amd_assembly_program \0";
/// clr: opencl/amdocl/cl_device.cpp. The text behind the number is the shim's.
const PLATFORM_VERSION: &[u8] = b"OpenCL 2.1 AMD-APP (strict shim)\0";
const PLATFORM_EXTENSIONS: &[u8] = b"cl_khr_icd cl_amd_event_callback \0";
/// The board's name, which is empty on MI200. A number that design notes give to something else.
const BOARD_NAME_AMD: cl_device_info = 0x4038;

pub(super) fn install<const LANE: usize>(api: &mut Api) {
    put! { api:
        clGetDeviceInfo => device_info::<LANE>;
        clGetPlatformInfo => platform_info::<LANE>;
        clGetMemObjectInfo => mem_object_info::<LANE>;
        clGetExtensionFunctionAddressForPlatform => no_extension;
        clGetExtensionFunctionAddress => no_extension_at_all;
    }
}

/// Whether a device query came after OpenCL 2.2 or belongs to an extension that amdocl lacks.
fn is_unknown_to_device(what: cl_device_info) -> bool {
    matches!(
        what,
        // OpenCL 3.0.
        0x105E..=0x1069 | 0x106F..=0x1072
        // cl_khr_device_uuid, cl_khr_pci_bus_info.
        | 0x106A..=0x106E | 0x410F
        // cl_khr_external_memory, cl_khr_semaphore, cl_khr_external_semaphore.
        | 0x204C..=0x204F | 0x2052
    )
}

unsafe extern "C" fn device_info<const LANE: usize>(
    device: cl_device_id,
    what: cl_device_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    if is_unknown_to_device(what) {
        return CL_INVALID_VALUE;
    }
    let text = match what {
        opencl_sys::CL_DEVICE_VERSION => DEVICE_VERSION,
        opencl_sys::CL_DEVICE_OPENCL_C_VERSION => LANGUAGE_VERSION,
        opencl_sys::CL_DEVICE_EXTENSIONS => DEVICE_EXTENSIONS,
        BOARD_NAME_AMD => b"\0",
        _ => {
            let code = forward!(LANE.clGetDeviceInfo(device, what, size, value, needed));
            if code == CL_SUCCESS && !value.is_null() && size >= size_of::<u64>() {
                // SAFETY: the real function took the place, and it holds the query's 64 bits.
                unsafe { restrict(what, value.cast()) };
            }
            return code;
        }
    };
    // SAFETY: the caller's places, of the size given.
    unsafe { answer(text, size, value, needed) }
}

/// Takes away what amdocl does not report.
///
/// # Safety
///
/// `value` holds the answer to `what`.
unsafe fn restrict(what: cl_device_info, value: *mut u64) {
    let allowed = match what {
        // clr: rocclr/device/rocm/rocdevice.cpp: atomics only for HIP, system memory only on an APU.
        opencl_sys::CL_DEVICE_SVM_CAPABILITIES => {
            opencl_sys::CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | opencl_sys::CL_DEVICE_SVM_FINE_GRAIN_BUFFER
        }
        // Also `CL_DEVICE_QUEUE_ON_HOST_PROPERTIES`, its later name.
        opencl_sys::CL_DEVICE_QUEUE_PROPERTIES => opencl_sys::CL_QUEUE_PROFILING_ENABLE,
        _ => return,
    };
    // SAFETY: the caller's promise; the place need not be aligned.
    unsafe { value.write_unaligned(value.read_unaligned() & allowed) };
}

unsafe extern "C" fn platform_info<const LANE: usize>(
    platform: cl_platform_id,
    what: cl_platform_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    let text = match what {
        opencl_sys::CL_PLATFORM_VERSION => PLATFORM_VERSION,
        opencl_sys::CL_PLATFORM_EXTENSIONS => PLATFORM_EXTENSIONS,
        // OpenCL 3.0; external memory and semaphores.
        0x0906 | 0x0907 | 0x2036..=0x2038 | 0x2044 => return CL_INVALID_VALUE,
        _ => return forward!(LANE.clGetPlatformInfo(platform, what, size, value, needed)),
    };
    // SAFETY: the caller's places, of the size given.
    unsafe { answer(text, size, value, needed) }
}

unsafe extern "C" fn mem_object_info<const LANE: usize>(
    object: cl_mem,
    what: cl_mem_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    // clr: opencl/amdocl/cl_memobj.cpp: type, flags, size, host pointer, map and reference count,
    // context, parent, offset, use of shared virtual memory; nothing else.
    if !(opencl_sys::CL_MEM_TYPE..=opencl_sys::CL_MEM_USES_SVM_POINTER).contains(&what) {
        return CL_INVALID_VALUE;
    }
    forward!(LANE.clGetMemObjectInfo(object, what, size, value, needed))
}

/// None of the extensions whose functions are queried by name is present. amdocl knows names of its
/// own and of OpenGL's, which this crate does not use.
unsafe extern "C" fn no_extension(_: cl_platform_id, _: *const c_char) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn no_extension_at_all(_: *const c_char) -> *mut c_void {
    std::ptr::null_mut()
}

/// Answers a query with a text, as amdocl does: what is behind the text is filled with zeros.
///
/// # Safety
///
/// `value` is null or a place of `size` bytes; `needed` is null or a place for a size.
unsafe fn answer(text: &[u8], size: usize, value: *mut c_void, needed: *mut usize) -> cl_int {
    if !value.is_null() {
        if size < text.len() {
            return CL_INVALID_VALUE;
        }
        // SAFETY: the place has `size` bytes, and the text has no more.
        unsafe {
            std::ptr::write_bytes(value.cast::<u8>(), 0, size);
            std::ptr::copy_nonoverlapping(text.as_ptr(), value.cast(), text.len());
        }
    }
    if !needed.is_null() {
        // SAFETY: it is a place for a size.
        unsafe { *needed = text.len() };
    }
    CL_SUCCESS
}
