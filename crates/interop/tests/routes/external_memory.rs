//! OpenCL with `cl_khr_external_memory_opaque_fd`, in front of one without: what it imports is
//! mapped and given to the driver in place, and its rules are watched.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_void};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use clmgr::opencl_sys::{
    self, cl_command_queue, cl_context, cl_device_id, cl_device_info, cl_event, cl_int, cl_kernel, cl_mem,
    cl_mem_flags, cl_mem_properties, cl_platform_id, cl_uint,
};
use rustix::mm::{MapFlags, ProtFlags, mmap};

const EXTENSIONS: &[u8] = b" cl_khr_external_memory cl_khr_external_memory_opaque_fd";

static REAL: OnceLock<clmgr::Api> = OnceLock::new();

#[derive(Default)]
struct Watch {
    /// Whether each imported buffer is taken over.
    taken: BTreeMap<usize, bool>,
    /// The import that a part is of. Handles of parts may come again, of the same import or another.
    parts: HashMap<usize, usize>,
    arguments: HashMap<usize, BTreeMap<u32, usize>>,
    violations: Vec<&'static str>,
}

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);

fn watch<R>(work: impl FnOnce(&mut Watch) -> R) -> R {
    let mut guard: MutexGuard<'_, _> = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    work(guard.get_or_insert_default())
}

/// What was done against the extension's rules since the last call.
pub fn violations() -> Vec<&'static str> {
    watch(|watch| std::mem::take(&mut watch.violations))
}

/// Whether any import is taken over.
pub fn is_taken() -> bool {
    watch(|watch| watch.taken.values().any(|taken| *taken))
}

pub fn wrap(api: &mut clmgr::Api) {
    REAL.get_or_init(|| *api);
    api.clGetDeviceInfo = Some(device_info);
    api.clCreateBufferWithProperties = Some(create);
    api.clReleaseMemObject = Some(release);
    api.clGetExtensionFunctionAddressForPlatform = Some(function);
    api.clCreateSubBuffer = Some(create_part);
    api.clSetKernelArg = Some(set_arg);
    api.clEnqueueNDRangeKernel = Some(enqueue);
}

fn real() -> &'static clmgr::Api {
    REAL.get().expect("wrapped")
}

unsafe extern "C" fn device_info(
    device: cl_device_id,
    what: cl_device_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    let get = real().clGetDeviceInfo.expect("clGetDeviceInfo");
    if what != opencl_sys::CL_DEVICE_EXTENSIONS {
        // SAFETY: the caller's arguments.
        return unsafe { get(device, what, size, value, needed) };
    }
    // SAFETY: the caller's device and places; the text is copied only where it fits.
    unsafe {
        let mut bytes = 0;
        let code = get(device, what, 0, null_mut(), &raw mut bytes);
        if code != 0 {
            return code;
        }
        let mut text = vec![0_u8; bytes];
        get(device, what, bytes, text.as_mut_ptr().cast(), null_mut());
        text.pop();
        text.extend_from_slice(EXTENSIONS);
        text.push(0);
        if !value.is_null() {
            if size < text.len() {
                return opencl_sys::CL_INVALID_VALUE;
            }
            std::ptr::copy_nonoverlapping(text.as_ptr(), value.cast(), text.len());
        }
        if !needed.is_null() {
            *needed = text.len();
        }
    }
    0
}

unsafe extern "C" fn create(
    context: cl_context,
    properties: *const cl_mem_properties,
    flags: cl_mem_flags,
    bytes: usize,
    _: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    // SAFETY: a list that ends with zero; the first pair is what this crate's layer writes first.
    let (kind, fd) = unsafe { (*properties, *properties.add(1)) };
    assert_eq!(kind, u64::from(opencl_sys::CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR));
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the descriptor is the caller's and open; a new mapping, left to the process's end.
    let mapped = unsafe {
        let fd = BorrowedFd::borrow_raw(fd as i32);
        mmap(null_mut(), bytes, access, MapFlags::SHARED, fd, 0)
    };
    let Ok(host) = mapped else {
        // SAFETY: a place for the code.
        unsafe { *code = opencl_sys::CL_INVALID_VALUE };
        return null_mut();
    };
    let flags = flags | opencl_sys::CL_MEM_USE_HOST_PTR;
    // SAFETY: the mapping has the size and stays.
    let buffer = unsafe { real().clCreateBuffer.expect("clCreateBuffer")(context, flags, bytes, host, code) };
    if !buffer.is_null() {
        // SAFETY: a successful import owns the descriptor.
        drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
        watch(|watch| watch.taken.insert(buffer.addr(), false));
    }
    buffer
}

unsafe extern "C" fn create_part(
    buffer: cl_mem,
    flags: cl_mem_flags,
    kind: opencl_sys::cl_buffer_create_type,
    region: *const c_void,
    code: *mut cl_int,
) -> cl_mem {
    let create = real().clCreateSubBuffer.expect("clCreateSubBuffer");
    // SAFETY: the caller's arguments.
    let part = unsafe { create(buffer, flags, kind, region, code) };
    watch(|watch| {
        if watch.taken.contains_key(&buffer.addr()) {
            watch.parts.insert(part.addr(), buffer.addr());
        } else {
            watch.parts.remove(&part.addr());
        }
    });
    part
}

unsafe extern "C" fn release(buffer: cl_mem) -> cl_int {
    watch(|watch| {
        if watch.taken.remove(&buffer.addr()) == Some(true) {
            watch.violations.push("released while taken over");
        }
    });
    // SAFETY: the caller's reference.
    unsafe { real().clReleaseMemObject.expect("clReleaseMemObject")(buffer) }
}

unsafe extern "C" fn function(platform: cl_platform_id, name: *const c_char) -> *mut c_void {
    // SAFETY: a C string by the specification.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"clEnqueueAcquireExternalMemObjectsKHR" => acquire as *mut c_void,
        b"clEnqueueReleaseExternalMemObjectsKHR" => hand_back as *mut c_void,
        _ => real()
            .clGetExtensionFunctionAddressForPlatform
            // SAFETY: the caller's arguments.
            .map_or(null_mut(), |get| unsafe { get(platform, name) }),
    }
}

type Events = (cl_uint, *const cl_event, *mut cl_event);

fn change(
    queue: cl_command_queue,
    buffers: (cl_uint, *const cl_mem),
    (waits, list, event): Events,
    taken: bool,
    violation: &'static str,
) -> cl_int {
    for index in 0..buffers.0 as usize {
        // SAFETY: the caller gives as many handles.
        let buffer = unsafe { *buffers.1.add(index) }.addr();
        watch(|watch| {
            if watch.taken.insert(buffer, taken) != Some(!taken) {
                watch.violations.push(violation);
            }
        });
    }
    let marker = real().clEnqueueMarkerWithWaitList.expect("markers");
    // SAFETY: the caller's queue, list and place.
    unsafe { marker(queue, waits, list, event) }
}

unsafe extern "C" fn acquire(
    queue: cl_command_queue,
    count: cl_uint,
    buffers: *const cl_mem,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let events = (waits, list, event);
    change(queue, (count, buffers), events, true, "taken over twice")
}

unsafe extern "C" fn hand_back(
    queue: cl_command_queue,
    count: cl_uint,
    buffers: *const cl_mem,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let events = (waits, list, event);
    change(
        queue,
        (count, buffers),
        events,
        false,
        "handed back without being taken over",
    )
}

unsafe extern "C" fn set_arg(kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void) -> cl_int {
    if size == size_of::<cl_mem>() && !value.is_null() {
        // SAFETY: the caller gives a value of this size.
        let handle = unsafe { value.cast::<usize>().read_unaligned() };
        watch(|watch| {
            let arguments = watch.arguments.entry(kernel.addr()).or_default();
            arguments.insert(index, handle);
        });
    }
    // SAFETY: the caller's arguments.
    unsafe { real().clSetKernelArg.expect("clSetKernelArg")(kernel, index, size, value) }
}

unsafe extern "C" fn enqueue(
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
    watch(|watch| {
        let used = watch.arguments.get(&kernel.addr());
        let used = used.into_iter().flat_map(BTreeMap::values);
        let imports = used.map(|buffer| watch.parts.get(buffer).unwrap_or(buffer));
        let not_taken = imports.filter(|buffer| watch.taken.get(buffer) == Some(&false));
        if not_taken.count() > 0 {
            watch.violations.push("used by a kernel without being taken over");
        }
    });
    let launch = real().clEnqueueNDRangeKernel.expect("kernels");
    // SAFETY: the caller's arguments.
    unsafe { launch(queue, kernel, dims, offset, global, local, waits, list, event) }
}
