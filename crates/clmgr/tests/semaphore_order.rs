//! A signal comes before its wait: held on any device, by a thin driver that adds the extension's
//! functions to the real one's and notes their order.

mod common;

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use clmgr::opencl_sys::{
    CL_DEVICE_EXTENSIONS, cl_command_queue, cl_context, cl_device_id, cl_event, cl_function_types as types, cl_int,
    cl_platform_id, cl_uint,
};
use clmgr::{Api, Context, Error, Manager, Semaphore, SemaphoreKind};

static REAL: OnceLock<Api> = OnceLock::new();

thread_local! {
    /// Those of this test, whose thread makes them all.
    static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn note(call: &'static str) {
    CALLS.with_borrow_mut(|calls| calls.push(call));
}

unsafe extern "C" fn device_info(
    device: cl_device_id,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    const LIST: &[u8] = b"cl_khr_semaphore cl_khr_external_semaphore cl_khr_external_semaphore_opaque_fd\0";
    if what != CL_DEVICE_EXTENSIONS {
        let real = REAL.get().unwrap().clGetDeviceInfo.unwrap();
        // SAFETY: the caller's arguments, for the function they were meant for.
        return unsafe { real(device, what, size, value, needed) };
    }
    if !value.is_null() {
        assert!(size >= LIST.len());
        // SAFETY: the caller gives a place of `size` bytes.
        unsafe { value.cast::<u8>().copy_from_nonoverlapping(LIST.as_ptr(), LIST.len()) };
    }
    if !needed.is_null() {
        // SAFETY: the caller gives a valid place or null.
        unsafe { *needed = LIST.len() };
    }
    0
}

unsafe extern "C" fn create(context: cl_context, _: *const u64, code: *mut cl_int) -> *mut c_void {
    // SAFETY: the caller gives a valid place.
    unsafe { *code = 0 };
    // Any handle that is not null will do: only this driver sees it.
    context
}

unsafe extern "C" fn release(_: *mut c_void) -> cl_int {
    note("release");
    0
}

/// A marker stands for either command.
fn marker(queue: cl_command_queue, event: *mut cl_event) -> cl_int {
    let marker = REAL.get().unwrap().clEnqueueMarkerWithWaitList.unwrap();
    // SAFETY: the caller's queue and place.
    unsafe { marker(queue, 0, std::ptr::null(), event) }
}

type Enqueue = unsafe extern "C" fn(
    cl_command_queue,
    cl_uint,
    *const *mut c_void,
    *const u64,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> cl_int;

unsafe extern "C" fn wait(
    queue: cl_command_queue,
    _: cl_uint,
    _: *const *mut c_void,
    _: *const u64,
    _: cl_uint,
    _: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    note("wait");
    marker(queue, event)
}

unsafe extern "C" fn signal(
    queue: cl_command_queue,
    _: cl_uint,
    _: *const *mut c_void,
    _: *const u64,
    _: cl_uint,
    _: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    note("signal");
    marker(queue, event)
}

unsafe extern "C" fn flush(queue: cl_command_queue) -> cl_int {
    note("flush");
    // SAFETY: the caller's queue.
    unsafe { REAL.get().unwrap().clFlush.unwrap()(queue) }
}

unsafe extern "C" fn function(_: cl_platform_id, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller gives a C string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"clCreateSemaphoreWithPropertiesKHR" => create as *const () as *mut c_void,
        b"clReleaseSemaphoreKHR" => release as *const () as *mut c_void,
        b"clEnqueueWaitSemaphoresKHR" => wait as Enqueue as *mut c_void,
        b"clEnqueueSignalSemaphoresKHR" => signal as Enqueue as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}

fn take_calls() -> Vec<&'static str> {
    CALLS.take()
}

fn manager() -> Manager {
    let hook = |api: &mut clmgr::Api| {
        // The first one will do for all: they are of one library.
        let _ = REAL.set(*api);
        api.clGetDeviceInfo = Some(device_info);
        let by_name: types::clGetExtensionFunctionAddressForPlatform_t = Some(function);
        api.clGetExtensionFunctionAddressForPlatform = by_name;
        api.clFlush = Some(flush);
    };
    // SAFETY: the functions only touch memory they are given.
    unsafe { Manager::load_with(hook) }.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_signal_is_handed_to_the_device_before_its_wait_may_be_enqueued() {
    let manager = manager();
    let context = Context::new(&manager.devices()[0]).unwrap();
    let (one, two) = (context.queue().unwrap(), context.queue().unwrap());
    let elsewhere = Context::new(&manager.devices()[0]).unwrap();
    let semaphore = Semaphore::new(&context).unwrap();
    take_calls();

    assert!(matches!(semaphore.wait(&two), Err(Error::NotSignalled)));
    assert!(take_calls().is_empty(), "the driver was asked");
    semaphore.signal(&one).unwrap();
    // A wait that fails takes no signal.
    let foreign = semaphore.wait(&elsewhere.queue().unwrap());
    assert!(matches!(foreign, Err(Error::ContextMismatch { .. })));
    semaphore.wait(&two).unwrap();
    let again = semaphore.wait(&two).unwrap_err();
    assert!(again.to_string().contains("signal first"), "{again}");
    assert_eq!(take_calls(), ["signal", "flush", "wait"]);

    let exported = semaphore.export(SemaphoreKind::OPAQUE_FD);
    assert!(matches!(exported, Err(Error::NotSupported { .. })));
    drop(semaphore);
    assert_eq!(take_calls().last(), Some(&"release"));
}

#[test]
fn an_imported_semaphore_is_signalled_by_others_too() {
    let manager = manager();
    let context = Context::new(&manager.devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let fd = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: this driver does not look at the descriptor.
    let imported = unsafe { Semaphore::import(&context, SemaphoreKind::OPAQUE_FD, fd.into()) }.unwrap();
    take_calls();
    // Nothing here has signalled it, and nothing here knows what will.
    for _ in 0..2 {
        imported.wait(&queue).unwrap().wait().unwrap();
    }
    assert_eq!(take_calls(), ["wait", "wait"]);
    let own = Semaphore::new(&context).unwrap();
    assert!(matches!(own.wait(&queue), Err(Error::NotSignalled)));
}
