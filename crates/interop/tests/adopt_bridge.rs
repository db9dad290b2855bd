//! Bridges on contexts, queues and streams that other code created.

mod common;

use clmgr::opencl_sys::{cl_device_id, cl_int, cl_uint};
use common::Foreign;
use interop::{Bridge, Error, ForeignObjects, Options};

fn adopt(foreign: &Foreign) -> interop::Result<Bridge> {
    // SAFETY: `foreign` outlives every bridge of these tests, and its handles are alive.
    unsafe { Bridge::adopt(&common::host(), foreign.objects(), &Options::default()) }
}

fn refused(foreign: &Foreign, objects: ForeignObjects, options: &Options) -> Error {
    let before = foreign.references(None);
    // SAFETY: every handle is alive or null, and what is null is refused.
    let error = unsafe { Bridge::adopt(&common::host(), objects, options) }.expect_err("refused");
    assert_eq!(foreign.references(None), before, "{error}");
    error
}

/// That all references are back. A driver's thread may still hold the event of its last callback
/// when everything of ours is gone, and each event holds the context.
fn assert_let_go(foreign: &Foreign, before: [u32; 3]) {
    let start = std::time::Instant::now();
    while foreign.references(None) != before && start.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    assert_eq!(foreign.references(None), before);
}

#[test]
fn a_bridge_works_on_the_owners_queue_and_stream_and_lets_them_go() {
    let foreign = Foreign::new(&common::host());
    let before = foreign.references(None);
    let bridge = adopt(&foreign).expect("a bridge");
    assert_eq!(bridge.cl_context().raw(), foreign.context);
    assert_eq!(bridge.main_queue().raw(), foreign.queue);
    assert_eq!(bridge.main_stream().raw(), foreign.stream);
    let native = bridge.native_handles();
    assert_eq!(native.platform, foreign.device.raw_platform());
    let (device, context) = (native.device, native.context);
    let back = ForeignObjects {
        context,
        device,
        queue: native.queue,
        stream: native.stream,
    };
    assert_eq!(format!("{back:?}"), format!("{:?}", foreign.objects()));
    let [_, context, queue] = foreign.references(None);
    assert!(context > before[1] && queue > before[2], "nothing retained");

    let mut data = bridge.alloc::<u32>(1000).expect("an allocation");
    data.upload(&[7; 1000]).expect("an upload");
    let kernel = bridge
        .programs()
        .get("kernel void add(global uint *x) { x[get_global_id(0)] += 1; }", "")
        .and_then(|program| program.kernel("add"))
        .expect("a kernel");
    let guard = data.cl_mut(bridge.main_queue()).expect("access");
    let range = clmgr::NdRange::d1(1000);
    // SAFETY: the kernel touches the 1000 words of `data`.
    unsafe { kernel.launch(bridge.main_queue(), range, &[guard.arg()]) }.expect("a launch");
    drop(guard);
    assert_eq!(data.hip(bridge.main_stream()).expect("access").slice().len(), 1000);
    let mut result = [0; 1000];
    data.download(&mut result).expect("a download");
    assert_eq!(result, [8; 1000]);

    drop((data, kernel, bridge));
    assert_let_go(&foreign, before);
    let query = foreign.hip.hipStreamQuery.expect("hipStreamQuery");
    // SAFETY: the stream is the owner's and was not destroyed.
    let idle = unsafe { query(foreign.stream) };
    assert_eq!(idle, hip_sys::hipError_t::hipSuccess);
}

#[test]
fn buffers_keep_the_foreign_context_after_their_bridge() {
    let foreign = Foreign::new(&common::host());
    let before = foreign.references(None);
    let bridge = adopt(&foreign).expect("a bridge");
    let data = bridge.alloc::<u8>(64).expect("an allocation");
    drop(bridge);
    assert!(foreign.references(None)[1] > before[1]);
    drop(data);
    assert_let_go(&foreign, before);
}

#[test]
fn a_queue_of_other_code_is_taken_and_let_go_and_one_of_another_context_refused() {
    let selection = common::host();
    let (foreign, stranger) = (Foreign::new(&selection), Foreign::new(&selection));
    let before = foreign.references(None);
    let bridge = adopt(&foreign).expect("a bridge");
    // SAFETY: both are alive, and null is no queue.
    let (taken, other, null) = unsafe {
        (
            bridge.adopt_queue(foreign.queue),
            bridge.adopt_queue(stranger.queue),
            bridge.adopt_queue(std::ptr::null_mut()),
        )
    };
    let other = other.expect_err("a queue of another context");
    assert!(matches!(other, Error::OtherOwner { what: "queue", .. }), "{other}");
    assert!(matches!(null, Err(Error::Cl(clmgr::Error::Foreign { .. }))));
    let queue = taken.expect("a queue");
    assert_eq!(queue.raw(), foreign.queue);
    let mut data = bridge.alloc::<u32>(16).expect("an allocation");
    drop(data.cl_mut(&queue).expect("access on the owner's queue"));
    drop((data, bridge));
    assert!(foreign.references(None)[2] > before[2], "nothing retained");
    drop(queue);
    assert_let_go(&foreign, before);
}

#[test]
fn a_context_of_several_devices_is_refused_with_the_reason() {
    let selection = common::host();
    let single = Foreign::new(&selection);
    let Some(part) = SubDevice::first(&single.device) else {
        return common::skipped("this OpenCL does not partition its device");
    };
    let devices = [single.device.raw(), part.device];
    let several = Foreign::of_devices(&selection, &single.device, &devices);
    // PoCL 3.1 treats the sub-device as the whole device.
    if several.device_count() < 2 {
        return common::skipped("this OpenCL has no context for a device and its sub-device");
    }
    let error = refused(&several, several.objects(), &Options::default());
    assert!(matches!(error, Error::SeveralDevices { count: 2 }), "{error}");
    assert!(error.to_string().contains("one context per device"), "{error}");
}

#[test]
fn objects_that_do_not_belong_together_are_refused() {
    let selection = common::host();
    let (one, two) = (Foreign::new(&selection), Foreign::new(&selection));
    let mixed = ForeignObjects {
        queue: two.queue,
        ..one.objects()
    };
    let options = Options::default();
    let error = refused(&one, mixed, &options);
    assert!(matches!(error, Error::OtherOwner { what: "queue", .. }), "{error}");
    let stranger = ForeignObjects {
        device: std::ptr::without_provenance_mut(0x10),
        ..one.objects()
    };
    let error = refused(&one, stranger, &options);
    assert!(matches!(error, Error::ForeignDevice { .. }), "{error}");
    let null = ForeignObjects {
        queue: std::ptr::null_mut(),
        ..one.objects()
    };
    assert!(matches!(refused(&one, null, &options), Error::Cl(_)));
    let null = ForeignObjects {
        context: std::ptr::null_mut(),
        ..one.objects()
    };
    assert!(matches!(refused(&one, null, &options), Error::Cl(_)));
}

#[test]
fn the_default_stream_serves_as_well() {
    let foreign = Foreign::new(&common::host());
    let objects = ForeignObjects {
        stream: std::ptr::null_mut(),
        ..foreign.objects()
    };
    // SAFETY: the handles are alive as long as `foreign`.
    let bridge = unsafe { Bridge::adopt(&common::host(), objects, &Options::default()) };
    let bridge = bridge.expect("a bridge");
    assert!(bridge.main_stream().raw().is_null());
    let mut data = bridge.alloc::<u32>(4).expect("an allocation");
    data.upload(&[1, 2, 3, 4]).expect("an upload");
    drop(data.hip_mut(bridge.main_stream()).expect("access"));
    drop(data.cl(bridge.main_queue()).expect("access"));
}

/// A half of a device: as good as a second one for a context.
struct SubDevice {
    device: cl_device_id,
    release: unsafe extern "C" fn(cl_device_id) -> cl_int,
}

impl SubDevice {
    fn first(device: &clmgr::Device) -> Option<Self> {
        type Create =
            unsafe extern "C" fn(cl_device_id, *const isize, cl_uint, *mut cl_device_id, *mut cl_uint) -> cl_int;
        const EQUALLY: isize = 0x1086;
        // SAFETY: the library is loaded already; its functions have OpenCL's signatures.
        unsafe {
            let library = libloading::Library::new(device.library_path()).ok()?;
            let create = *library.get::<Create>(b"clCreateSubDevices").ok()?;
            let release = *library.get(b"clReleaseDevice").ok()?;
            let mut parts = [std::ptr::null_mut(); 64];
            let mut count = 0;
            let by = [EQUALLY, 1, 0];
            let code = create(device.raw(), by.as_ptr(), 64, parts.as_mut_ptr(), &raw mut count);
            std::mem::forget(library);
            (code == 0 && count > 0).then_some(Self {
                device: parts[0],
                release,
            })
        }
    }
}

impl Drop for SubDevice {
    fn drop(&mut self) {
        // SAFETY: the one reference of the creation.
        unsafe { (self.release)(self.device) };
    }
}
