//! What the tests share: the host platform, and objects as other code would make them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::c_void;
use std::io::Write;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::time::Duration;

use clmgr::opencl_sys::{self, cl_command_queue, cl_context, cl_device_id, cl_mem, cl_mem_flags};
use interop::{Bridge, ForeignObjects, Grade, Options};
use platform::{Platform, Selection};
use proptest::test_runner::Config as ProptestConfig;

/// The software device, for what is told of it or planted in it.
pub fn host() -> Selection {
    platform::select_named(Some("host")).expect("the host platform")
}

/// The platform that `HIPCL_PLATFORM` names, the software device if it names none. A platform that is named and cannot
/// be used fails the test.
pub fn selection() -> Selection {
    let name = std::env::var("HIPCL_PLATFORM").unwrap_or_default();
    let name = Some(name.as_str()).filter(|name| !name.is_empty());
    platform::select_named(name.or(Some("host"))).unwrap_or_else(|error| panic!("{error}"))
}

/// A limit that no work of a test exceeds unless it never ends: longer on a device that the variable
/// `HIPCL_SLOW_DEVICE` calls slower.
pub fn patiently(limit: Duration) -> Duration {
    limit * slower()
}

/// Rounds of a loop, of which the whole has a limit.
pub fn rounds(usual: u32) -> u32 {
    usual / slower()
}

/// How many times slower the variable `HIPCL_SLOW_DEVICE` calls the device, as far as limits and loops follow.
fn slower() -> u32 {
    let times = std::env::var("HIPCL_SLOW_DEVICE").map(|times| times.parse().expect("HIPCL_SLOW_DEVICE is a number"));
    u32::min(times.unwrap_or(1), 10)
}

/// A random test of so many cases, or of fewer if proptest's own variable `PROPTEST_CASES` asks for fewer, as on an
/// emulated GPU.
pub fn cases(most: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: u32::min(most, default.cases),
        failure_persistence: None,
        ..default
    }
}

pub fn on_host() -> bool {
    selection().platform() == Platform::Host
}

/// Whether the tests run on the software device; notes a skip with this reason if not.
pub fn on_host_or_skip(reason: &str) -> bool {
    let on_host = on_host();
    if !on_host {
        skipped(reason);
    }
    on_host
}

/// Whether the tests run on GPUs; notes a skip with this reason if not.
pub fn on_cards_or_skip(reason: &str) -> bool {
    let on_cards = !on_host();
    if !on_cards {
        skipped(reason);
    }
    on_cards
}

/// The grades that were proven here: all, on the software device.
pub fn grades() -> &'static [Grade] {
    static PROVEN: OnceLock<Vec<Grade>> = OnceLock::new();
    PROVEN.get_or_init(|| {
        let bridge = Bridge::open(&selection(), &Options::default()).expect("a bridge");
        let proven = bridge.grades().iter().filter(|report| report.works());
        proven.map(|report| report.grade).collect()
    })
}

/// Whether this grade was proven here; records a skip if not.
pub fn grade_or_skip(grade: Grade) -> bool {
    let proven = grades().contains(&grade);
    if !proven {
        skipped(&format!("the grade `{grade}` does not work on this OpenCL"));
    }
    proven
}

/// Says that the running test can't do its work here, also in the file that `HIPCL_SKIP_LOG` names.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let log = std::fs::File::options().append(true).create(true).open(log);
        let mut log = log.expect("the skip log opens");
        log.write_all(line.as_bytes()).expect("the skip log takes a line");
    }
}

/// Runs this test program once more, without the tests in `skip`, on the model whose device memory faults when the host
/// touches it. `own` is the caller, which would run it again and again.
///
/// One test at a time: on that model streams share four hardware queues, so that a test that holds a stream on purpose
/// holds streams of other tests, and a hand-off of theirs can be given up.
pub fn once_more_where_the_host_cannot_touch_device_memory(own: &str, skip: &[&str]) {
    const STRICT: &str = "HIP_HOST_STRICT";
    if std::env::var_os(STRICT).is_some_and(|level| level == "2")
        || !on_host_or_skip("the other model is the software device's")
    {
        return;
    }
    let program = std::env::current_exe().expect("the test program");
    let skipped = skip.iter().chain([&own]).flat_map(|name| ["--skip", *name]);
    let output = std::process::Command::new(program)
        .args(skipped)
        .arg("--test-threads=1")
        .env(STRICT, "2")
        .output()
        .expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("test result: ok") && !text.contains(" 0 passed"),
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// OpenCL objects and a HIP stream, created by the APIs' own functions.
pub struct Foreign {
    pub api: clmgr::Api,
    pub hip: std::sync::Arc<hip_sys::Api>,
    pub device: clmgr::Device,
    pub context: cl_context,
    pub queue: cl_command_queue,
    pub stream: hip_sys::hipStream_t,
}

impl Foreign {
    pub fn new(selection: &Selection) -> Self {
        let manager = clmgr::Manager::load().expect("OpenCL; run `cargo xtask setup`");
        let is_cpu = |device: &clmgr::Device| device.kind() == clmgr::DeviceKind::Cpu;
        let device = manager.devices().into_iter().find(is_cpu).expect("a CPU");
        Self::of_devices(selection, &device, &[device.raw()])
    }

    pub fn of_devices(selection: &Selection, device: &clmgr::Device, devices: &[cl_device_id]) -> Self {
        let (api, hip) = (*device.api(), selection.tables().hip.clone());
        let (mut code, mut stream) = (0, null_mut());
        // SAFETY: living devices of one platform, no properties, valid places; the queue is of the
        // context's first device; HIP's current device is there.
        let (context, queue) = unsafe {
            let context = api.clCreateContext.expect("clCreateContext")(
                null(),
                devices.len() as u32,
                devices.as_ptr(),
                None,
                null_mut(),
                &raw mut code,
            );
            assert_eq!(code, 0);
            let create = api.clCreateCommandQueue.expect("clCreateCommandQueue");
            let queue = create(context, device.raw(), 0, &raw mut code);
            assert_eq!(code, 0);
            let create = hip.hipStreamCreate.expect("hipStreamCreate");
            assert_eq!(create(&raw mut stream), hip_sys::hipError_t::hipSuccess);
            (context, queue)
        };
        Self {
            api,
            hip,
            device: device.clone(),
            context,
            queue,
            stream,
        }
    }

    pub fn objects(&self) -> ForeignObjects {
        ForeignObjects {
            context: self.context,
            device: self.device.raw(),
            queue: self.queue,
            stream: self.stream,
        }
    }

    /// The number of devices in the context, as counted by the driver.
    pub fn device_count(&self) -> u32 {
        let get = self.api.clGetContextInfo.expect("clGetContextInfo");
        let what = opencl_sys::CL_CONTEXT_NUM_DEVICES;
        // SAFETY: the context is alive; the property is a `cl_uint`.
        count(|size, place| unsafe { get(self.context, what, size, place, null_mut()) })
    }

    pub fn buffer(&self, flags: cl_mem_flags, bytes: usize) -> cl_mem {
        let mut code = 0;
        let create = self.api.clCreateBuffer.expect("clCreateBuffer");
        // SAFETY: no host memory; a valid place for the code.
        let buffer = unsafe { create(self.context, flags, bytes, null_mut(), &raw mut code) };
        assert_eq!(code, 0);
        buffer
    }

    pub fn release(&self, buffer: cl_mem) {
        let release = self.api.clReleaseMemObject.expect("clReleaseMemObject");
        // SAFETY: the tests release the reference of the creation once.
        assert_eq!(unsafe { release(buffer) }, 0);
    }

    /// Of buffer, context and queue.
    pub fn references(&self, buffer: Option<cl_mem>) -> [u32; 3] {
        let api = &self.api;
        let of_buffer = buffer.map_or(0, |buffer| {
            let get = api.clGetMemObjectInfo.expect("clGetMemObjectInfo");
            let what = opencl_sys::CL_MEM_REFERENCE_COUNT;
            // SAFETY: the buffer is alive; the property is a `cl_uint`.
            count(|size, place| unsafe { get(buffer, what, size, place, null_mut()) })
        });
        let of_context = {
            let get = api.clGetContextInfo.expect("clGetContextInfo");
            let what = opencl_sys::CL_CONTEXT_REFERENCE_COUNT;
            // SAFETY: the context is alive; the property is a `cl_uint`.
            count(|size, place| unsafe { get(self.context, what, size, place, null_mut()) })
        };
        let of_queue = {
            let get = api.clGetCommandQueueInfo.expect("clGetCommandQueueInfo");
            let what = opencl_sys::CL_QUEUE_REFERENCE_COUNT;
            // SAFETY: the queue is alive; the property is a `cl_uint`.
            count(|size, place| unsafe { get(self.queue, what, size, place, null_mut()) })
        };
        [of_buffer, of_context, of_queue]
    }
}

fn count(get: impl FnOnce(usize, *mut c_void) -> i32) -> u32 {
    let mut count = 0_u32;
    assert_eq!(get(size_of::<u32>(), (&raw mut count).cast()), 0);
    count
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: all are references of the creation; nothing else uses the stream.
        unsafe {
            (self.api.clReleaseCommandQueue.expect("clReleaseCommandQueue"))(self.queue);
            (self.api.clReleaseContext.expect("clReleaseContext"))(self.context);
            let _ = (self.hip.hipStreamDestroy.expect("hipStreamDestroy"))(self.stream);
        }
    }
}
