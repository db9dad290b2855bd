//! What keeps a route from being taken.

use std::ffi::c_void;

use interop::{Bridge, Error, Options, Route};
use platform::{ForeignHooks, ForeignKind};

use crate::{common, works};

/// Runs the test of this name in a process of its own, with this environment; false in that process.
fn in_child(test: &str, variable: &str, value: &str) -> bool {
    if std::env::var_os(variable).is_some_and(|set| set == value) {
        return false;
    }
    let program = std::env::current_exe().expect("this program");
    let outcome = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(variable, value)
        .status()
        .expect("a child");
    assert!(outcome.success(), "{outcome}");
    true
}

#[test]
fn a_bridge_to_the_second_device_tells_the_model_whose_memory_it_is() {
    let name = "rules::a_bridge_to_the_second_device_tells_the_model_whose_memory_it_is";
    if in_child(name, "HIP_HOST_DEVICES", "2") {
        return;
    }
    let options = Options {
        hip_device: Some(1),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    for route in bridge.report().working() {
        works(&bridge, route);
    }
    assert_eq!(bridge.route(), Route::SvmCoarse);
}

/// OpenCL's memory lies on device 0, whatever device it was paired with.
unsafe fn on_device_0(ptr: *mut c_void, bytes: usize, _: ForeignKind, _: usize) -> Result<(), String> {
    // SAFETY: the caller keeps the memory.
    unsafe { hip_host::foreign::adopt(ptr, bytes, hip_host::foreign::ForeignKind::Vram) }
        .map_err(|error| error.to_string())
}

fn release(ptr: *mut c_void) -> Result<(), String> {
    hip_host::foreign::release(ptr).map_err(|error| error.to_string())
}

#[test]
fn two_devices_that_were_mixed_up_are_caught_before_a_kernel_runs() {
    let name = "rules::two_devices_that_were_mixed_up_are_caught_before_a_kernel_runs";
    if in_child(name, "HIP_HOST_DEVICES", "2") {
        return;
    }
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: on_device_0,
        release,
        reaches_hip: || true,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    let options = Options {
        hip_device: Some(1),
        ..Options::default()
    };
    let bridge = Bridge::open(&selection, &options).expect("other routes remain");
    for route in [Route::SvmCoarse, Route::GpuVa] {
        let error = bridge.alloc_on::<u32>(route, 64).expect_err("the wrong device");
        assert!(matches!(error, Error::OtherDevice { .. }), "{route}: {error}");
        let report = bridge.report().routes.iter().find(|report| report.route == route);
        assert!(report.is_some_and(|report| report.failed()), "{route}");
        assert!(!bridge.permitted().contains(&route));
    }
}

#[test]
fn memory_that_the_model_does_not_take_is_no_route() {
    unsafe fn refuse(_: *mut c_void, _: usize, _: ForeignKind, _: usize) -> Result<(), String> {
        Err("refused for a test".into())
    }
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release,
        reaches_hip: || true,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    let bridge = Bridge::open(&selection, &Options::default()).expect("other routes remain");
    assert_eq!(bridge.route(), Route::HipPointer);
    let named = Options {
        route: Some(Route::SvmCoarse),
        ..Options::default()
    };
    let error = Bridge::open(&selection, &named).expect_err("named, and refused");
    assert!(
        matches!(&error, Error::NotPossible { tried } if tried.len() == 1),
        "{error}"
    );
    assert!(error.to_string().contains("refused for a test"), "{error}");
}

#[test]
fn a_buffer_object_is_had_where_opencl_owns_the_memory_and_refused_elsewhere() {
    let bridge = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let queue = bridge.queue().expect("a queue");
    let fill = bridge
        .programs()
        .get("kernel void fill(global uint *x) { x[get_global_id(0)] = 5u; }", "")
        .and_then(|program| program.kernel("fill"))
        .expect("a kernel");
    for route in bridge.report().working() {
        let mut data = bridge.alloc_on::<u32>(route, 64).expect("memory");
        data.upload(&[0; 64]).expect("an upload");
        let guard = data.cl_mut(&queue).expect("access");
        let pointer_only = matches!(route, Route::HipPointer | Route::Managed);
        match guard.mem_arg() {
            Ok(object) => {
                assert!(!pointer_only, "{route}");
                assert!(matches!(object, clmgr::Arg::Mem(_)), "{route}");
                // SAFETY: the kernel writes 64 words.
                unsafe { fill.launch(&queue, clmgr::NdRange::d1(64), &[object]) }.expect("a launch");
            }
            Err(error) => {
                assert!(pointer_only && error.is_impossible(), "{route}: {error}");
                continue;
            }
        }
        drop(guard);
        let mut back = [0; 64];
        data.download(&mut back).expect("a download");
        assert_eq!(back, [5; 64], "{route}");
    }
}
