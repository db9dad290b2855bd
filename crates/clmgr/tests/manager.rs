//! Finding OpenCL, its devices and its functions.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use clmgr::opencl_sys::cl_function_types::{clEnqueueWriteBuffer_t, clGetDeviceInfo_t};
use clmgr::opencl_sys::{cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_mem, cl_uint};
use clmgr::{
    CommandQueuePool, Context, Error, FloatSupport, Manager, ProgramCache, RegularBuffer, SvmBuffer, SvmCapabilities,
};

#[test]
fn devices_tell_what_they_are() {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    assert!(!manager.libraries().is_empty());
    for library in manager.libraries() {
        assert!(!library.platforms.is_empty(), "{library:?}");
    }
    for device in manager.devices() {
        assert!(!device.name().is_empty() && !device.driver_version().is_empty());
        assert!(device.version().starts_with("OpenCL "), "{}", device.version());
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
                    || device.extensions().any(|e| e == &extension[..extension.len() - 1])
            );
        }
        if device.svm().contains(SvmCapabilities::FINE_SYSTEM) {
            assert!(device.svm().contains(SvmCapabilities::COARSE));
        }
    }
}

#[test]
fn what_a_device_tells_agrees_with_its_extensions_and_its_limits() {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    for device in manager.devices() {
        let info = device.info().unwrap();
        // The specification's least values of the full profile.
        assert!(info.max_work_item_sizes.len() >= 3, "{info}");
        assert!(info.max_work_item_sizes.iter().all(|&size| size > 0));
        let most: usize = info
            .max_work_item_sizes
            .iter()
            .fold(1, |product, &size| product.saturating_mul(size));
        assert!(info.max_work_group <= most, "{info}");
        assert!(info.max_parameter_bytes >= 256 && info.timer_resolution_ns > 0);
        assert!(matches!(info.address_bits, 32 | 64));
        let least = FloatSupport::ROUND_TO_NEAREST | FloatSupport::INF_NAN;
        assert!(info.fp32.contains(least) || info.fp32.contains(FloatSupport::ROUND_TO_ZERO));
        let doubles = FloatSupport::FMA | FloatSupport::DENORM | least;
        assert_eq!(info.fp64.is_some(), device.has_extension("cl_khr_fp64"));
        assert!(info.fp64.is_none_or(|support| support.contains(doubles)));
        assert_eq!(info.fp16.is_some(), device.has_extension("cl_khr_fp16"));
        if device.has_extension("cl_khr_subgroups") {
            assert!(info.sub_groups.is_some(), "{info}");
        }
        assert_eq!((info.svm, info.pci), (device.svm(), device.pci_address()));
        let identified = device.has_extension("cl_khr_device_uuid");
        assert!(identified || (info.uuid, info.driver_uuid, info.luid) == (None, None, None));
        let text = info.to_string();
        for part in [device.name(), device.driver_version(), "work-groups", "fp64"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(device.extensions().all(|name| text.contains(name)), "{text}");
        assert!(
            text.lines().all(|line| line.trim_end() == line),
            "a line without a value: {text}"
        );
    }
}

#[test]
fn a_refused_question_leaves_its_field_empty_and_a_needed_one_is_an_error() {
    let device = |api: &mut clmgr::Api| {
        let _ = REAL_INFO.set(api.clGetDeviceInfo);
        api.clGetDeviceInfo = Some(old_device);
    };
    // SAFETY: the function refuses or passes on.
    let manager = unsafe { Manager::load_with(device) }.unwrap_or_else(|error| panic!("{error}"));
    let info = manager.devices()[0].info().unwrap();
    assert!(info.svm.is_empty() && info.sub_groups.is_none() && info.uuid.is_none());
    assert_eq!((info.unified_memory, info.printf_bytes), (None, None));
    assert_eq!(info.language_version, None);
    assert!(info.to_string().contains("language unknown"), "{info}");
    REFUSES_ALL.store(1, Ordering::SeqCst);
    let error = manager.devices()[0].info().unwrap_err();
    REFUSES_ALL.store(0, Ordering::SeqCst);
    assert!(error.to_string().contains("clGetDeviceInfo"), "{error}");
}

static REAL_INFO: OnceLock<clGetDeviceInfo_t> = OnceLock::new();
static REFUSES_ALL: AtomicUsize = AtomicUsize::new(0);

/// Knows no question that came after OpenCL 1.0.
unsafe extern "C" fn old_device(
    device: cl_device_id,
    what: cl_uint,
    size: usize,
    value: *mut std::ffi::c_void,
    needed: *mut usize,
) -> cl_int {
    if what > 0x1033 || REFUSES_ALL.load(Ordering::SeqCst) != 0 {
        return clmgr::opencl_sys::CL_INVALID_VALUE;
    }
    let real = REAL_INFO.get().copied().flatten().unwrap();
    // SAFETY: the arguments are passed on as they came.
    unsafe { real(device, what, size, value, needed) }
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

/// Runs one test of this file again, in a process of its own.
fn again(program: &Path, test: &str, prepare: impl FnOnce(&mut Command)) -> String {
    let mut child = Command::new(program);
    child.args(["--exact", test, "--nocapture", "--ignored"]);
    prepare(&mut child);
    let child = child.output().unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    String::from_utf8(child.stdout).unwrap()
}

/// What loading gives if `HIPCL_OPENCL` names this library.
fn loading_with(library: &str) -> String {
    again(
        &std::env::current_exe().unwrap(),
        "prints_what_loading_gives",
        |child| {
            child.env("HIPCL_OPENCL", library);
        },
    )
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
#[ignore = "run by other tests in a process of its own"]
fn prints_the_cache_folder() {
    println!("result: {:?}", ProgramCache::open(&common::context()).folder());
}

#[test]
fn the_cache_folder_follows_the_environment() {
    if !common::tells_code(&common::context()) {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let folder = |variables: &[(&str, &str)]| {
        again(&program, "prints_the_cache_folder", |child| {
            child.env_remove("HIPCL_CACHE_DIR");
            child.envs(variables.iter().copied());
        })
    };
    assert!(folder(&[("HIPCL_CACHE_DIR", "/somewhere")]).contains("\"/somewhere/opencl\""));
    let elsewhere = tempfile::tempdir().unwrap();
    let printed = folder(&[("XDG_CACHE_HOME", elsewhere.path().to_str().unwrap())]);
    let expected = format!("{:?}", elsewhere.path().join("hipcl/opencl"));
    assert!(printed.contains(&expected), "{printed}");
}

#[test]
fn a_driver_file_is_found_above_the_executable_and_in_a_target_folder() {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    let library = &manager.libraries()[0];
    let near = tempfile::tempdir().unwrap();
    let program = near.path().join("deep").join("program");
    fs::create_dir_all(near.path().join("deep")).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let package = elsewhere.path().join("deep");
    fs::create_dir_all(&package).unwrap();
    let loading = || {
        again(&program, "prints_what_loading_gives", |child| {
            child.env_remove("HIPCL_OPENCL").env("CARGO_MANIFEST_DIR", &package);
        })
    };
    let entry = format!("{:?}", library.path);
    let without = loading();
    if without.contains("kind: SystemLoader") {
        common::skipped("the system's ICD loader may have every driver that a file could name");
        return;
    }
    assert!(!without.contains(&entry), "found without a driver file");
    for folder in [
        near.path().join("hipcl-opencl"),
        elsewhere.path().join("target/hipcl-opencl"),
    ] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("test.icd"), format!("{}\n", library.path.display())).unwrap();
        let output = loading();
        assert!(output.contains(&entry) && output.contains("kind: Driver"), "{output}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_library_that_does_not_load_is_named_with_the_remedy() {
    let output = loading_with("/nowhere/libOpenCL-none.so");
    let result = output.lines().find(|line| line.contains("result: ")).unwrap();
    for part in [
        "no OpenCL device found",
        "/nowhere/libOpenCL-none.so",
        "unset HIPCL_OPENCL, or set it",
    ] {
        assert!(result.contains(part), "{result}");
    }
}

#[test]
fn a_library_that_is_no_opencl_is_refused() {
    let output = loading_with("libc.so.6");
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
    unsafe { original(queue, buffer, blocking, offset, size, data, waits, list, event) }
}

#[test]
fn a_replaced_function_sees_every_call() {
    let count = |api: &mut clmgr::Api| {
        // One device is used below, so that the first library's function is enough.
        let _ = ORIGINAL.set(api.clEnqueueWriteBuffer);
        api.clEnqueueWriteBuffer = Some(counted_write);
    };
    // SAFETY: the function passes everything on.
    let manager = unsafe { Manager::load_with(count) }.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let mut buffer = RegularBuffer::new(&context, 1000).unwrap();
    buffer.write(&queue, &[1.0f32; 1000]).unwrap();
    buffer.write_at(&queue, 10, &[2.0f32; 5]).unwrap();
    assert_eq!(WRITTEN.load(Ordering::Relaxed), 4020);
}

unsafe extern "C" fn failing_unmap(
    _: cl_command_queue,
    _: cl_mem,
    _: *mut std::ffi::c_void,
    _: cl_uint,
    _: *const cl_event,
    _: *mut cl_event,
) -> cl_int {
    clmgr::opencl_sys::CL_OUT_OF_RESOURCES
}

#[test]
fn an_error_in_a_drop_comes_with_the_next_finish() {
    let fail = |api: &mut clmgr::Api| api.clEnqueueUnmapMemObject = Some(failing_unmap);
    // SAFETY: the function refuses.
    let manager = unsafe { Manager::load_with(fail) }.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let queue = context.queue().unwrap();
    let buffer = RegularBuffer::<u32>::new(&context, 10).unwrap();
    drop(buffer.map(&queue).unwrap());
    let error = queue.finish().unwrap_err();
    assert!(matches!(error, Error::Deferred(_)), "{error}");
    assert!(error.to_string().contains("clEnqueueUnmapMemObject"), "{error}");
    queue.finish().unwrap();
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn counted_free(_: cl_context, _: *mut std::ffi::c_void) {
    FREED.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn failing_finish(_: cl_command_queue) -> cl_int {
    clmgr::opencl_sys::CL_OUT_OF_RESOURCES
}

#[test]
fn memory_whose_last_use_cannot_be_waited_for_is_never_freed() {
    let load = |finish_fails: bool| {
        let hook = |api: &mut clmgr::Api| {
            api.clSVMFree = Some(counted_free);
            if finish_fails {
                api.clFinish = Some(failing_finish);
            }
        };
        // SAFETY: the functions refuse, or free nothing.
        unsafe { Manager::load_with(hook) }.unwrap_or_else(|error| panic!("{error}"))
    };
    for (finish_fails, freed) in [(false, 1), (true, 0)] {
        let context = Context::new(&load(finish_fails).devices()[0]).unwrap();
        if !common::has(&context, SvmCapabilities::COARSE) {
            return;
        }
        let queue = context.queue().unwrap();
        let buffer = SvmBuffer::<u32>::coarse(&context, 10).unwrap();
        buffer.note_use(&queue);
        FREED.store(0, Ordering::Relaxed);
        drop(buffer);
        assert_eq!(FREED.load(Ordering::Relaxed), freed);
    }
}

#[test]
fn an_error_in_a_drop_reaches_its_lease_or_the_pool() {
    let fail = |api: &mut clmgr::Api| api.clEnqueueUnmapMemObject = Some(failing_unmap);
    // SAFETY: the function refuses.
    let manager = unsafe { Manager::load_with(fail) }.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let pool = CommandQueuePool::new(&context, 1).unwrap();
    let buffers: Vec<_> = (0..3)
        .map(|_| RegularBuffer::<u32>::new(&context, 10).unwrap())
        .collect();
    let first = pool.lease().unwrap();
    drop(buffers[0].map(&first).unwrap());
    drop(buffers[1].map(&first).unwrap());
    // Both errors, on the lease that owns the maps.
    let Err(Error::Deferred(errors)) = first.finish() else {
        panic!("no error")
    };
    assert_eq!(errors.len(), 2, "{errors:?}");
    first.finish().unwrap();
    // One that the lease leaves behind, and one from a map that outlives it.
    drop(buffers[0].map(&first).unwrap());
    let late = buffers[2].map(&first).unwrap();
    drop(first);
    let second = pool.lease().unwrap();
    drop(late);
    second.finish().unwrap();
    assert_eq!(pool.take_deferred_errors().len(), 2);
    // The context gets what is left at the end, which is when no buffer is mapped on the queue any more.
    drop(buffers[1].map(&second).unwrap());
    drop((second, pool));
    assert!(context.take_deferred_errors().is_empty());
    drop(buffers);
    assert!(!context.take_deferred_errors().is_empty());
    let queue = context.queue().unwrap();
    let buffer = RegularBuffer::<u32>::new(&context, 10).unwrap();
    drop(buffer.map(&queue).unwrap());
    drop((buffer, queue));
    assert!(!context.take_deferred_errors().is_empty());
}
