//! Finding OpenCL, its devices and its functions.

mod common;

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use clmgr::opencl_sys::cl_function_types::clEnqueueWriteBuffer_t;
use clmgr::opencl_sys::{cl_bool, cl_command_queue, cl_event, cl_int, cl_mem, cl_uint};
use clmgr::{Context, Manager, RegularBuffer, SvmCapabilities};

#[test]
fn devices_tell_what_they_are() {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    assert!(!manager.libraries().is_empty());
    for library in manager.libraries() {
        assert!(!library.platforms.is_empty(), "{library:?}");
    }
    for device in manager.devices() {
        assert!(!device.name().is_empty() && !device.driver_version().is_empty());
        assert!(
            device.version().starts_with("OpenCL "),
            "{}",
            device.version()
        );
        assert!(
            device.platform_version().starts_with("OpenCL "),
            "{}",
            device.platform_version()
        );
        assert!(device.compute_units() > 0 && device.max_work_group() > 0);
        assert!(device.max_alloc_bytes() <= device.global_bytes());
        for extension in device.extensions() {
            assert!(device.has_extension(extension));
            assert!(
                !device.has_extension(&extension[..extension.len() - 1])
                    || device
                        .extensions()
                        .any(|e| e == &extension[..extension.len() - 1])
            );
        }
        if device.svm().contains(SvmCapabilities::FINE_SYSTEM) {
            assert!(device.svm().contains(SvmCapabilities::COARSE));
        }
    }
}

#[test]
fn extension_functions_come_from_the_platform() {
    let device = common::device();
    assert!(device.extension_function(c"clNoSuchFunctionKHR").is_none());
    for (extension, function) in [
        ("cl_intel_unified_shared_memory", c"clHostMemAllocINTEL"),
        ("cl_khr_command_buffer", c"clCreateCommandBufferKHR"),
        ("cl_khr_il_program", c"clCreateProgramWithILKHR"),
    ] {
        if device.has_extension(extension) {
            assert!(device.extension_function(function).is_some(), "{extension}");
        }
    }
}

/// Runs one test of this file again, in a process of its own whose environment differs.
fn again(test: &str, variable: &str, value: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--ignored"])
        .env(variable, value)
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stderr)
    );
    String::from_utf8(child.stdout).unwrap()
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn prints_what_loading_gives() {
    match Manager::load() {
        Ok(manager) => println!("result: {:?}", manager.libraries()),
        Err(error) => println!("result: {error}"),
    }
}

#[test]
fn a_library_that_does_not_load_is_named_with_the_remedy() {
    let output = again(
        "prints_what_loading_gives",
        "HIPCL_OPENCL",
        "/nowhere/libOpenCL-none.so",
    );
    let result = output
        .lines()
        .find(|line| line.contains("result: "))
        .unwrap();
    for part in [
        "no OpenCL device found",
        "/nowhere/libOpenCL-none.so",
        "cargo xtask setup",
        "HIPCL_OPENCL",
    ] {
        assert!(result.contains(part), "{result}");
    }
}

#[test]
fn a_library_that_is_no_opencl_is_refused() {
    let output = again("prints_what_loading_gives", "HIPCL_OPENCL", "libc.so.6");
    assert!(
        output.contains("libc.so.6: it exports neither clGetPlatformIDs"),
        "{output}"
    );
}

static WRITTEN: AtomicUsize = AtomicUsize::new(0);
static ORIGINAL: OnceLock<clEnqueueWriteBuffer_t> = OnceLock::new();

unsafe extern "C" fn counted_write(
    queue: cl_command_queue,
    buffer: cl_mem,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    data: *const std::ffi::c_void,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    WRITTEN.fetch_add(size, Ordering::Relaxed);
    let original = ORIGINAL.get().copied().flatten().unwrap();
    // SAFETY: the arguments are passed on as they came.
    unsafe {
        original(
            queue, buffer, blocking, offset, size, data, waits, list, event,
        )
    }
}

#[test]
fn a_replaced_function_sees_every_call() {
    let manager = Manager::load_with(|api| {
        // One device is used below, so that the first library's function is enough.
        let _ = ORIGINAL.set(api.clEnqueueWriteBuffer);
        api.clEnqueueWriteBuffer = Some(counted_write);
    })
    .unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let mut buffer = RegularBuffer::new(&context, 1000).unwrap();
    buffer.write(&queue, &[1.0f32; 1000]).unwrap();
    buffer.write_at(&queue, 10, &[2.0f32; 5]).unwrap();
    assert_eq!(WRITTEN.load(Ordering::Relaxed), 4020);
}
