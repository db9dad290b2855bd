//! Memory that other code allocated: kept alive, left to its owner, ordered with its other views.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use clmgr::SvmGrain;
use clmgr::opencl_sys::{self, cl_mem};
use common::Foreign;
use interop::{Bridge, Error, Grade, Link, Options, Policy, Route, Shared};

const LEN: usize = 4096;

struct Rig {
    foreign: Foreign,
    bridge: Bridge,
    queue: clmgr::Queue,
    stream: hip::Stream,
    cl: clmgr::Kernel,
    hip: hip::Function,
}

impl Rig {
    fn open() -> Self {
        Self::with(&Options::default())
    }

    fn with(options: &Options) -> Self {
        let foreign = Foreign::new(&common::host());
        // SAFETY: `foreign` is the last field to be used and outlives the bridge in every test.
        let bridge = unsafe { Bridge::adopt(&common::host(), foreign.objects(), options) };
        let bridge = bridge.expect("a bridge");
        let source = "kernel void step(global uint *x, uint k) {
            uint v = x[get_global_id(0)];
            for (uint n = 0; n < 200; ++n) v = v * 1664525u + k;
            x[get_global_id(0)] = v;
        }";
        let cl = bridge
            .programs()
            .get(source, "")
            .and_then(|program| program.kernel("step"));
        let hip = hip::rtc::Program::new(
            "extern \"C\" __global__ void step(unsigned int *x, unsigned int k) {
                unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
                unsigned int v = x[i];
                for (unsigned int n = 0; n < 200; ++n) v = v * 22695477u + k;
                x[i] = v;
            }",
        )
        .compile(bridge.hip_device())
        .and_then(|module| module.function("step"));
        Self {
            queue: bridge.queue().expect("a queue"),
            stream: bridge.stream().expect("a stream"),
            cl: cl.expect("a kernel"),
            hip: hip.expect("a kernel"),
            bridge,
            foreign,
        }
    }

    fn cl_step(&self, data: &mut Shared<u32>, k: u32) {
        let range = clmgr::NdRange::d1(data.len());
        let guard = data.cl_mut(&self.queue).expect("access for OpenCL");
        let args = [guard.arg(), clmgr::Arg::scalar(&k)];
        // SAFETY: `step` takes a buffer and a uint and touches one word per work-item.
        unsafe { self.cl.launch(&self.queue, range, &args) }.expect("a launch");
    }

    fn hip_step(&self, data: &mut Shared<u32>, k: u32) {
        let config = hip::LaunchConfig::linear(data.len(), 256).expect("a grid");
        let mut guard = data.hip_mut(&self.stream).expect("access for HIP");
        // SAFETY: `step` takes a pointer and a uint and touches one word per thread.
        unsafe { self.hip.launch(&self.stream, config, &[&guard.slice_mut(), &k]) }.expect("a launch");
    }
}

fn model(x: &mut [u32], factor: u32, k: u32) {
    for v in x {
        for _ in 0..200 {
            *v = v.wrapping_mul(factor).wrapping_add(k);
        }
    }
}

fn model_cl(x: &mut [u32], k: u32) {
    model(x, 1_664_525, k);
}

fn model_hip(x: &mut [u32], k: u32) {
    model(x, 22_695_477, k);
}

fn downloaded(data: &Shared<u32>) -> Vec<u32> {
    let mut back = vec![0; data.len()];
    data.download(&mut back).expect("a download");
    back
}

/// Both APIs, twice.
fn both_use(rig: &Rig, data: &mut Shared<u32>) {
    let mut expected: Vec<u32> = (0..data.len() as u32).collect();
    data.upload(&expected).expect("an upload");
    for k in 0..2 {
        rig.cl_step(data, k);
        model_cl(&mut expected, k);
        rig.hip_step(data, k);
        model_hip(&mut expected, k);
    }
    assert_eq!(downloaded(data), expected);
}

/// Tells when it is dropped.
struct Owner(Arc<AtomicBool>);

impl Owner {
    fn new() -> (Self, Arc<AtomicBool>) {
        let gone = Arc::new(AtomicBool::new(false));
        (Self(gone.clone()), gone)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// # Safety
/// As `Bridge::adopt_cl_mem`.
unsafe fn adopt(rig: &Rig, raw: cl_mem) -> Shared<u32> {
    // SAFETY: the caller's promise.
    unsafe { rig.bridge.adopt_cl_mem(raw, None) }.expect("adopted")
}

#[test]
fn foreign_cl_mem_outlives_its_owners_reference() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(0, LEN * 4);
    // SAFETY: the buffer is alive, and nothing else uses it.
    let mut data = unsafe { adopt(&rig, raw) };
    assert_eq!((data.route(), data.len()), (Route::GpuVa, LEN));
    rig.foreign.release(raw);
    both_use(&rig, &mut data);
}

#[test]
fn the_bytes_of_a_foreign_cl_mem_behind_the_last_whole_element_stay() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(0, LEN * 4 + 3);
    // SAFETY: the buffer is alive; the guards of the two views are taken one after the other.
    let mut bytes = unsafe { rig.bridge.adopt_cl_mem::<u8>(raw, None) }.expect("adopted");
    bytes.upload(&[7; LEN * 4 + 3]).expect("an upload");
    // SAFETY: as above.
    let mut words = unsafe { adopt(&rig, raw) };
    assert_eq!(words.len(), LEN);
    words.upload(&[1; LEN]).expect("an upload");
    let mut seen = [0; LEN];
    words.download(&mut seen).expect("a download");
    assert_eq!(seen, [1; LEN]);
    let mut all = [0; LEN * 4 + 3];
    bytes.download(&mut all).expect("a download");
    assert_eq!(all[LEN * 4..], [7; 3]);
    drop((bytes, words));
    rig.foreign.release(raw);
}

#[test]
fn numbers_that_lie_where_no_float2_does_are_not_transformed() {
    let rig = Rig::open();
    let mut memory = rig.bridge.hip_device().alloc_zeroed::<f32>(130).expect("memory");
    let words = memory.on_mut(&rig.stream).expect("access").as_mut_ptr();
    let numbers = words.wrapping_add(1).cast::<clmgr::C32>();
    // SAFETY: 129 words follow, and no other code uses them.
    let mut data = unsafe { rig.bridge.adopt_hip(numbers, 64, memory) }.expect("aligned for its type");
    let plan = clmgr_fft::Plan::new(rig.bridge.cl_context(), rig.bridge.programs(), 64, 1).expect("a plan");
    let fft = rig.bridge.stream_fft(&plan).expect("it runs on streams");
    let mut guard = data.hip_mut(&rig.stream).expect("access");
    let refused = fft.enqueue_in_place(&rig.stream, clmgr_fft::Direction::Forward, guard.slice_mut());
    let text = refused.expect_err("its kernels load 8 bytes at once").to_string();
    assert!(text.contains("a multiple of 8"), "{text}");
}

#[test]
fn foreign_cl_mem_is_given_back_as_it_was() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(0, LEN * 4);
    // SAFETY: the buffer is alive, and nothing else uses it.
    let data = unsafe { adopt(&rig, raw) };
    assert_eq!(rig.foreign.references(Some(raw))[0], 2);
    drop(data);
    assert_eq!(rig.foreign.references(Some(raw))[0], 1);
    // SAFETY: as above; the route takes no buffer objects.
    let refused = unsafe { rig.bridge.adopt_cl_mem::<u32>(raw, Some(Route::HostPinned)) };
    assert!(matches!(refused, Err(Error::NotPossible { .. })));
    assert_eq!(rig.foreign.references(Some(raw))[0], 1);
    rig.foreign.release(raw);
}

#[test]
fn a_buffer_for_reading_is_never_written() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(opencl_sys::CL_MEM_READ_ONLY, LEN * 4);
    // SAFETY: the buffer is alive, and nothing else uses it.
    let mut data = unsafe { adopt(&rig, raw) };
    rig.foreign.release(raw);
    assert!(matches!(data.cl_mut(&rig.queue), Err(Error::ReadOnly)));
    assert!(matches!(data.hip_mut(&rig.stream), Err(Error::ReadOnly)));
    assert!(matches!(data.upload(&[0; LEN]), Err(Error::ReadOnly)));
    drop(data.hip(&rig.stream).expect("reading is fine"));
    let written = rig.foreign.buffer(opencl_sys::CL_MEM_WRITE_ONLY, LEN * 4);
    // SAFETY: as above.
    drop(unsafe { adopt(&rig, written) });
    rig.foreign.release(written);
}

#[test]
fn a_part_and_its_whole_are_ordered_against_each_other() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(0, LEN * 4);
    let half = LEN / 2;
    let region = opencl_sys::cl_buffer_region {
        origin: half * 4,
        size: half * 4,
    };
    let create = rig.foreign.api.clCreateSubBuffer.expect("clCreateSubBuffer");
    let (mut code, kind) = (0, opencl_sys::CL_BUFFER_CREATE_TYPE_REGION);
    // SAFETY: the region lies in the buffer; a valid place for the code.
    let part = unsafe { create(raw, 0, kind, (&raw const region).cast(), &raw mut code) };
    assert_eq!(code, 0);
    // SAFETY: both are alive; the guards below are taken one after the other.
    let (mut upper, mut whole) = unsafe { (adopt(&rig, part), adopt(&rig, raw)) };
    rig.foreign.release(part);
    rig.foreign.release(raw);
    let mut expected: Vec<u32> = (0..LEN as u32).collect();
    whole.upload(&expected).expect("an upload");
    for k in 0..20 {
        rig.cl_step(&mut whole, k);
        model_cl(&mut expected, k);
        rig.hip_step(&mut upper, k);
        model_hip(&mut expected[half..], k);
        rig.cl_step(&mut upper, k);
        model_cl(&mut expected[half..], k);
        rig.hip_step(&mut whole, k);
        model_hip(&mut expected, k);
    }
    assert_eq!(downloaded(&whole), expected);
    assert_eq!(downloaded(&upper), expected[half..]);
}

#[test]
fn a_buffer_of_another_context_is_refused() {
    let (rig, other) = (Rig::open(), Foreign::new(&common::host()));
    let raw = other.buffer(0, 64);
    // SAFETY: the buffer is alive.
    let refused = unsafe { rig.bridge.adopt_cl_mem::<u32>(raw, None) };
    assert!(matches!(refused, Err(Error::OtherOwner { what: "buffer", .. })));
    other.release(raw);
    // SAFETY: null is refused.
    let null = unsafe { rig.bridge.adopt_cl_mem::<u32>(std::ptr::null_mut(), None) };
    assert!(matches!(null, Err(Error::Cl(_))));
}

#[test]
fn a_copy_of_a_foreign_buffer_is_made_only_by_name_or_permission() {
    let rig = Rig::with(&Options {
        policy: Policy::AllowCopy,
        ..Options::default()
    });
    let raw = rig.foreign.buffer(0, LEN * 4);
    // SAFETY: the buffer is alive, and nothing else uses it.
    let mut data = unsafe { rig.bridge.adopt_cl_mem::<u32>(raw, Some(Route::Staging)) }.expect("adopted");
    assert!(data.is_copy());
    both_use(&rig, &mut data);
    drop(data);
    // SAFETY: as above.
    assert!(!unsafe { adopt(&rig, raw) }.is_copy());
    rig.foreign.release(raw);
}

#[test]
fn foreign_shared_memory_and_its_owner_live_as_long_as_the_view() {
    let rig = Rig::open();
    let context = rig.bridge.cl_context();
    for grain in [SvmGrain::Coarse, SvmGrain::Fine] {
        let memory = clmgr::SvmBuffer::<u32>::new(context, LEN, grain).expect("memory");
        let (ptr, (owner, gone)) = (memory.as_ptr(), Owner::new());
        // SAFETY: the memory is the owner's, and nothing else uses it.
        let mut data = unsafe { rig.bridge.adopt_svm(ptr, LEN, grain, (memory, owner)) };
        let data = data.as_mut().expect("adopted");
        assert_eq!(data.addresses(), Some((ptr.addr(), ptr.addr())));
        both_use(&rig, data);
        assert!(!gone.load(Ordering::SeqCst));
        drop(std::mem::replace(data, rig.bridge.alloc(1).expect("memory")));
        assert!(gone.load(Ordering::SeqCst));
    }
}

#[test]
fn a_download_by_a_kernel_is_no_part_of_a_captured_graph() {
    let rig = Rig::open();
    let stream = rig.bridge.main_stream();
    // Memory of another runtime, which HIP copies by a kernel, without users that a download would have to wait for.
    let memory = rig.bridge.alloc_on::<u32>(Route::SvmCoarse, LEN);
    let memory = memory.expect("memory");
    let (_, address) = memory.addresses().expect("one address");
    let ptr = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the memory outlives its view, and nothing else uses it.
    let data = unsafe { rig.bridge.adopt_hip::<u32>(ptr, LEN, ()) }.expect("adopted");
    let mut words = vec![0; LEN];
    let graph = stream.capture(|_| {
        let error = data.download(&mut words).expect_err("no kernel runs now");
        assert!(error.to_string().contains("is being captured"), "{error}");
        Ok(())
    });
    assert_eq!(graph.expect("a graph").node_count().expect("nodes"), 0);
    data.download(&mut words).expect("nothing is captured now");
}

#[test]
fn foreign_hip_memory_is_checked_and_used() {
    let rig = Rig::open();
    let mut memory = rig.bridge.hip_device().alloc::<u32>(LEN).expect("memory");
    let ptr = memory.on_mut(&rig.stream).expect("access").as_mut_ptr();
    // SAFETY: refused: it is longer than the memory.
    let long = unsafe { rig.bridge.adopt_hip(ptr, LEN + 100_000, ()) };
    assert!(matches!(long, Err(Error::OutsideAllocation { .. })), "{long:?}");
    let mut on_stack = [0_u32; 4];
    // SAFETY: refused: HIP does not know it.
    let unknown = unsafe { rig.bridge.adopt_hip(on_stack.as_mut_ptr(), 4, ()) };
    assert!(matches!(unknown, Err(Error::UnknownAddress { .. })), "{unknown:?}");
    // SAFETY: the memory is the owner's, and nothing else uses it.
    let mut data = unsafe { rig.bridge.adopt_hip(ptr, LEN, memory) }.expect("adopted");
    assert_eq!(data.route(), Route::HipPointer);
    both_use(&rig, &mut data);
}

#[test]
fn an_address_and_its_buffer_object_are_one_memory() {
    let rig = Rig::open();
    let context = rig.bridge.cl_context();
    let memory = clmgr::SvmBuffer::<u32>::coarse(context, LEN).expect("memory");
    // SAFETY: only its handle is used.
    let view = unsafe { memory.unbound_view() }.expect("a view");
    let ptr: *mut c_void = memory.as_ptr().cast();
    let view_raw = view.raw();
    // SAFETY: both are alive; the guards below are taken one after the other.
    let (mut by_object, mut by_address) = unsafe {
        (
            adopt(&rig, view_raw),
            rig.bridge
                .adopt_svm(ptr.cast::<u32>(), LEN, SvmGrain::Coarse, (view, memory))
                .expect("adopted"),
        )
    };
    assert_eq!(by_object.addresses(), by_address.addresses());
    let mut expected: Vec<u32> = (0..LEN as u32).collect();
    by_object.upload(&expected).expect("an upload");
    for k in 0..20 {
        rig.cl_step(&mut by_object, k);
        model_cl(&mut expected, k);
        rig.hip_step(&mut by_address, k);
        model_hip(&mut expected, k);
        rig.cl_step(&mut by_address, k);
        model_cl(&mut expected, k);
    }
    assert_eq!(downloaded(&by_object), expected);
    drop(by_object);
}

#[test]
fn a_view_whose_work_does_not_end_is_waited_for_after_it_was_dropped() {
    let options = Options {
        handoff_limit: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    let (held, other) = (bridge.stream().expect("a stream"), bridge.stream().expect("a stream"));
    let mut memory = bridge.hip_device().alloc_zeroed::<u32>(LEN).expect("memory");
    let ptr = memory.on_mut(&other).expect("access").as_mut_ptr();
    let memory = Arc::new(memory);
    // SAFETY: `memory` outlives both views, each of which is ordered against the other.
    let adopt = || unsafe { bridge.adopt_hip(ptr, LEN, memory.clone()) }.expect("adopted");
    let (mut one, two) = (adopt(), adopt());
    let (open, opened) = mpsc::channel::<()>();
    held.host_function(move || {
        let _: Result<(), _> = opened.recv();
    })
    .expect("a gate");
    drop(one.hip_mut(&held).expect("access"));
    drop(one);
    let errors = bridge.take_deferred_errors();
    assert!(matches!(errors[..], [Error::HandoffTimeout { .. }]), "{errors:?}");
    let error = two.hip(&other).map(drop).expect_err("the writer is at work");
    assert!(error.to_string().contains("did not hand over"), "{error}");
    drop(open);
    held.synchronize().expect("the gate is open");
    drop(two.hip(&other).expect("it has ended"));
}

/// No wait is longer than this.
fn soon() -> Options {
    Options {
        handoff_limit: Some(Duration::from_millis(100)),
        ..Options::default()
    }
}

#[test]
fn bytes_that_a_copy_shows_are_no_other_buffers() {
    let rig = Rig::open();
    let raw = rig.foreign.buffer(0, LEN * 4);
    let region = opencl_sys::cl_buffer_region {
        origin: LEN * 2,
        size: LEN * 2,
    };
    let create = rig.foreign.api.clCreateSubBuffer.expect("clCreateSubBuffer");
    let (mut code, kind) = (0, opencl_sys::CL_BUFFER_CREATE_TYPE_REGION);
    // SAFETY: the region lies in the buffer; a valid place for the code.
    let part = unsafe { create(raw, 0, kind, (&raw const region).cast(), &raw mut code) };
    assert_eq!(code, 0);
    // SAFETY: both are alive; no guards are taken.
    let adopt = |raw, route| unsafe { rig.bridge.adopt_cl_mem::<u32>(raw, Some(route)) };
    for (first, second) in [
        (Route::Staging, Route::Staging),
        (Route::Staging, Route::GpuVa),
        (Route::GpuVa, Route::Staging),
    ] {
        let kept = adopt(part, first).expect("adopted");
        let refused = adopt(raw, second).expect_err("the other would not see what is written");
        assert!(refused.to_string().contains("keeps a copy"), "{refused}");
        drop(kept);
        drop(adopt(raw, second).expect("no other view"));
    }
    rig.foreign.release(part);
    rig.foreign.release(raw);
}

#[test]
fn both_allocations_of_a_staging_buffer_are_no_other_buffers() {
    let rig = Rig::open();
    let data = rig.bridge.alloc_on::<u32>(Route::Staging, LEN).expect("memory");
    let guard = data.cl(&rig.queue).expect("access for OpenCL");
    let clmgr::Arg::Mem(raw) = guard.arg() else {
        panic!("a buffer object")
    };
    let source = "kernel void tell(global uint *x, global ulong *place) { *place = (ulong)x; }";
    let tell = rig.bridge.programs().get(source, "");
    let tell = tell.and_then(|program| program.kernel("tell")).expect("a kernel");
    let place = clmgr::RegularBuffer::<u64>::new(rig.bridge.cl_context(), 1).expect("memory");
    let args = [guard.arg(), place.arg()];
    // SAFETY: `tell` takes two buffers and writes one number to the second.
    unsafe { tell.launch(&rig.queue, clmgr::NdRange::d1(1), &args) }.expect("a launch");
    let mut address = [0];
    place.read(&rig.queue, &mut address).expect("a read");
    drop(guard);
    let hip = data.hip(&rig.stream).expect("access for HIP");
    let hip = hip.slice().as_ptr().cast_mut();

    let region = opencl_sys::cl_buffer_region {
        origin: LEN * 2,
        size: LEN * 2,
    };
    let api = &rig.foreign.api;
    let (mut code, kind) = (0, opencl_sys::CL_BUFFER_CREATE_TYPE_REGION);
    let create = api.clCreateSubBuffer.expect("clCreateSubBuffer");
    // SAFETY: the region lies in the buffer; a valid place for the code.
    let part = unsafe { create(raw, 0, kind, (&raw const region).cast(), &raw mut code) };
    assert_eq!(code, 0);
    let create = api.clCreateBuffer.expect("clCreateBuffer");
    let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
    let at = std::ptr::with_exposed_provenance_mut(address[0] as usize);
    // SAFETY: the device's memory is the host's, with as many bytes there; a valid place for the code.
    let over = unsafe { create(rig.bridge.cl_context().raw(), flags, LEN * 4, at, &raw mut code) };
    assert_eq!(code, 0);
    for object in [raw, part, over] {
        for route in [Route::GpuVa, Route::Staging] {
            // SAFETY: it is alive; no guard is taken.
            let refused = unsafe { rig.bridge.adopt_cl_mem::<u32>(object, Some(route)) };
            let refused = refused.expect_err("the two would not see each other's writes");
            assert!(refused.to_string().contains("keeps a copy"), "{refused}");
        }
    }
    // SAFETY: `data` keeps the memory; no guard is taken.
    let refused = unsafe { rig.bridge.adopt_hip(hip, LEN, ()) };
    let refused = refused.expect_err("the two would not see each other's writes");
    assert!(refused.to_string().contains("keeps a copy"), "{refused}");
    rig.foreign.release(part);
    drop(data);
    rig.foreign.release(over);
}

/// HIP's copy of it is aligned; a kernel of OpenCL gets the object's own address.
#[test]
fn an_object_less_aligned_than_its_elements_is_not_shared_by_copying_either() {
    let rig = Rig::open();
    let mut words = vec![0_u128; 65];
    let api = &rig.foreign.api;
    let create = api.clCreateBuffer.expect("clCreateBuffer");
    let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
    let odd = words.as_mut_ptr().cast::<u8>().wrapping_add(4);
    let mut code = 0;
    // SAFETY: 1024 bytes follow there, which outlive the object; a valid place for the code.
    let object = unsafe { create(rig.bridge.cl_context().raw(), flags, 1024, odd.cast(), &raw mut code) };
    assert_eq!(code, 0);
    for route in [Route::GpuVa, Route::Staging] {
        // SAFETY: it is alive; no guard is taken.
        let refused = unsafe { rig.bridge.adopt_cl_mem::<u128>(object, Some(route)) };
        assert!(matches!(refused, Err(Error::Alignment { .. })), "{route}: {refused:?}");
        // SAFETY: as above.
        let taken = unsafe { rig.bridge.adopt_cl_mem::<u32>(object, Some(route)) };
        assert!(taken.is_ok(), "{route}: {taken:?}");
    }
    rig.foreign.release(object);
}

/// The kernels of a fill and of a copy take units that the object's address suits.
#[test]
fn a_fill_and_a_copy_suit_an_object_at_an_odd_address() {
    let rig = Rig::open();
    let mut memory = vec![0_u128; 65];
    let create = rig.foreign.api.clCreateBuffer.expect("clCreateBuffer");
    let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_USE_HOST_PTR;
    let odd = memory.as_mut_ptr().cast::<u8>().wrapping_add(1);
    let mut code = 0;
    // SAFETY: 1024 bytes follow there, which outlive the object; a valid place for the code.
    let object = unsafe { create(rig.bridge.cl_context().raw(), flags, 1024, odd.cast(), &raw mut code) };
    assert_eq!(code, 0);
    let queue = rig.bridge.queue().expect("a queue");
    let pattern: Vec<u8> = (1..=16).collect();
    for route in [Route::GpuVa, Route::Staging] {
        // SAFETY: it is alive; no guard is taken.
        let mut adopted =
            unsafe { rig.bridge.adopt_cl_mem::<u8>(object, Some(route)) }.expect("bytes suit any address");
        let mut own = rig.bridge.alloc::<u8>(1024).expect("memory");
        adopted.fill(&queue, 0..1024, &pattern).expect("a fill");
        own.copy_from(&queue, 0, &adopted, 0..1024).expect("a copy");
        adopted.fill(&queue, 0..1024, &[7]).expect("a fill");
        adopted.copy_from(&queue, 16, &own, 0..1008).expect("a copy");
        let mut seen = vec![0; 1024];
        adopted.download(&mut seen).expect("a download");
        assert!(seen[..16].iter().all(|&byte| byte == 7), "{route}");
        assert!(seen[16..].chunks(16).all(|chunk| chunk == pattern), "{route}");
    }
    rig.foreign.release(object);
}

#[test]
fn the_drop_of_a_buffer_leaves_the_errors_of_its_users_queue_to_them() {
    type Unmap = unsafe extern "C" fn(
        opencl_sys::cl_command_queue,
        *mut c_void,
        u32,
        *const opencl_sys::cl_event,
        *mut opencl_sys::cl_event,
    ) -> i32;
    /// Whether to refuse the next unmap; the rest goes to the driver.
    static REFUSES: AtomicBool = AtomicBool::new(false);
    static UNMAP: OnceLock<Unmap> = OnceLock::new();
    unsafe extern "C" fn unmap(
        queue: opencl_sys::cl_command_queue,
        memory: *mut c_void,
        count: u32,
        list: *const opencl_sys::cl_event,
        event: *mut opencl_sys::cl_event,
    ) -> i32 {
        if REFUSES.swap(false, Ordering::SeqCst) {
            return opencl_sys::CL_OUT_OF_RESOURCES;
        }
        let unmap = UNMAP.get().expect("the driver's function");
        // SAFETY: the caller's arguments.
        unsafe { unmap(queue, memory, count, list, event) }
    }
    let hook = |api: &mut clmgr::Api| {
        if let Some(driver) = api.clEnqueueSVMUnmap.replace(unmap) {
            UNMAP.get_or_init(|| driver);
        }
    };
    // SAFETY: the function calls the one that it replaces, or refuses.
    let bridge = unsafe { Bridge::open_with(&common::host(), &Options::default(), hook) };
    let bridge = bridge.expect("a bridge");
    let queue = bridge.queue().expect("a queue");
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    drop(data.cl_mut(&queue).expect("access for OpenCL"));
    let other = clmgr::SvmBuffer::<u32>::coarse(bridge.cl_context(), LEN).expect("memory");
    let map = other.map(&queue).expect("a map");
    REFUSES.store(true, Ordering::SeqCst);
    drop(map);
    assert!(!REFUSES.load(Ordering::SeqCst), "it was refused");
    drop(data);
    let told = bridge.take_deferred_errors();
    assert!(told.is_empty(), "{told:?}");
    let told = queue.finish();
    assert!(matches!(told, Err(clmgr::Error::Deferred(_))), "{told:?}");
}

#[test]
fn an_export_comes_after_the_users_of_other_views() {
    let bridge = Bridge::open(&common::host(), &soon()).expect("a bridge");
    let queue = bridge.queue().expect("a queue");
    let device = bridge.hip_device();
    let mut memory = device.alloc_zeroed::<u32>(LEN).expect("memory");
    let stream = bridge.main_stream();
    let ptr = memory.on_mut(stream).expect("access").as_mut_ptr();
    let memory = Arc::new(memory);
    // SAFETY: `memory` outlives both views; the guards below are taken one after the other.
    let adopt = || unsafe { bridge.adopt_hip(ptr, LEN, memory.clone()) }.expect("adopted");
    let (mut one, two) = (adopt(), adopt());
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
    queue.wait_for(held.event()).expect("a wait");
    drop(one.cl_mut(&queue).expect("access"));
    let (link, _other) = Link::pair().expect("a link");
    let not = two
        .export(link.with_limit(Duration::from_millis(100)))
        .expect_err("the writer is at work");
    assert!(matches!(not.error, Error::HandoffTimeout { .. }), "{not}");
    assert!(not.buffer.is_some());
    held.complete().expect("an event");
}

/// The stream's work on one view waits for a queue that is held; the hand-off is given up while a user of another view,
/// who has more patience, waits for the stream.
#[test]
fn a_hand_off_given_up_under_another_views_wait_is_told_to_the_users_of_both() {
    type Use = fn(&mut Shared<u32>, &hip::Stream) -> interop::Result<()>;
    let uses: [Use; 3] = [
        |view, _| view.download(&mut [0; LEN]),
        |view, _| view.upload(&[3; LEN]),
        |view, stream| view.hip_mut(stream).map(drop),
    ];
    let grades = common::grades().iter().copied();
    let queued: Vec<_> = grades.filter(|grade| *grade != Grade::Host).collect();
    if queued.is_empty() {
        return common::skipped("no hand-off is queued ahead on this OpenCL runtime");
    }
    let patient = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    for grade in queued {
        for (kind, access) in uses.into_iter().enumerate() {
            let options = Options {
                grade: Some(grade),
                ..soon()
            };
            let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
            let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
            let mut memory = bridge.hip_device().alloc_zeroed::<u32>(LEN).expect("memory");
            let ptr = memory.on_mut(&stream).expect("access").as_mut_ptr();
            let memory = Arc::new(memory);
            // SAFETY: `memory` outlives both views; the guards below are taken one after the other.
            let adopt = |bridge: &Bridge| unsafe { bridge.adopt_hip(ptr, LEN, memory.clone()) }.expect("adopted");
            let (mut one, mut other) = (adopt(&bridge), adopt(&patient));
            let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
            queue.wait_for(held.event()).expect("a wait");
            drop(one.cl_mut(&queue).expect("access"));
            drop(one.hip_mut(&stream).expect("access"));
            let own = patient.stream().expect("a stream");
            let astray = access(&mut other, &own);
            assert!(
                matches!(astray, Err(Error::AnotherView { .. })),
                "{grade} {kind}: {astray:?}"
            );
            held.complete().expect("an event");
            queue.finish().expect("the queue is free");
            let told = one.download(&mut [0; LEN]);
            assert!(
                matches!(told, Err(Error::HandoffTimeout { .. })),
                "{grade} {kind}: {told:?}"
            );
            one.download(&mut [0; LEN]).expect("it was told once");
            access(&mut other, &own).expect("the order is known again");
        }
    }
}

/// The stream was let go while the queue still works, and then nothing is left of the view but what its users do.
#[test]
fn users_of_a_view_that_was_dropped_after_a_failed_hand_off_are_waited_for() {
    for grade in common::grades().iter().copied().filter(|grade| *grade != Grade::Host) {
        let options = Options {
            grade: Some(grade),
            ..soon()
        };
        let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
        let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
        let mut memory = bridge.hip_device().alloc_zeroed::<u32>(LEN).expect("memory");
        let ptr = memory.on_mut(&stream).expect("access").as_mut_ptr();
        let memory = Arc::new(memory);
        // SAFETY: `memory` outlives both views; the guards below are taken one after the other.
        let adopt = || unsafe { bridge.adopt_hip(ptr, LEN, memory.clone()) }.expect("adopted");
        let (mut dropped, mut other) = (adopt(), adopt());
        let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
        queue.wait_for(held.event()).expect("a wait");
        drop(dropped.cl_mut(&queue).expect("access"));
        drop(dropped.hip_mut(&stream).expect("access"));
        stream.synchronize().expect("it was let go");
        drop(dropped);
        assert!(!bridge.take_deferred_errors().is_empty());

        let told = other.upload(&[9; LEN]);
        assert!(matches!(told, Err(Error::AnotherView { .. })), "{grade}: {told:?}");
        let early = other.upload(&[9; LEN]);
        assert!(
            matches!(early, Err(Error::HandoffTimeout { .. })),
            "{grade}: the queue is at work: {early:?}"
        );
        held.complete().expect("an event");
        queue.finish().expect("the queue is free");
        other.upload(&[9; LEN]).expect("the queue has ended");
        assert_eq!(downloaded(&other), [9; LEN]);
    }
}

/// As large as it is aligned: more than allocations are by themselves.
#[derive(Clone, Copy)]
#[repr(C, align(65536))]
struct Block([u8; 65536]);

// SAFETY: bytes, and as many as the alignment.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Block {}

#[test]
fn memory_that_takes_over_is_aligned_for_the_elements() {
    let rig = Rig::open();
    let memory = clmgr::HostPtrBuffer::<u8>::new(rig.bridge.cl_context(), 4 * size_of::<Block>()).expect("memory");
    let begin = memory.as_ptr().align_offset(align_of::<Block>());
    let part = memory.part(begin..begin + 2 * size_of::<Block>()).expect("a part");
    let mut refused = 0;
    for route in Route::ALL {
        // SAFETY: the part outlives the view, and nothing else uses it.
        let data = unsafe { rig.bridge.adopt_cl_mem::<Block>(part.raw(), None) };
        let mut data = data.expect("adopted");
        match data.move_to(route) {
            Ok(()) => {
                let guard = data.hip(&rig.stream).expect("access");
                assert!(guard.slice().as_ptr().is_aligned(), "{route}");
            }
            Err(error) => refused += usize::from(matches!(error, Error::Alignment { .. })),
        }
    }
    assert!(refused > 0, "every route is aligned to 64 KiB by chance");
}
