//! Shared buffers on every route, against a model on the host.

mod common;

use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use interop::{Bridge, Category, Error, Grade, Options, Policy, Residency, Route, Shared};
use proptest::prelude::*;

const CL: &str = "
__kernel void step(__global uint *x, uint k)
{
    size_t i = get_global_id(0);
    uint v = x[i];
    /* Long enough that a missing wait shows. */
    for (uint n = 0; n < 64; ++n)
        v = v * 1664525u + k;
    x[i] = v;
}
__kernel void sum(__global const uint *x, __global uint *total)
{
    atomic_add((volatile __global uint *)total, x[get_global_id(0)]);
}";

const HIP: &str = r#"
extern "C" __global__ void step(unsigned int *x, unsigned int k)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int v = x[i];
    for (unsigned int n = 0; n < 64; ++n)
        v = v * 22695477u + k;
    x[i] = v;
}
extern "C" __global__ void sum(const unsigned int *x, unsigned int *total)
{
    atomicAdd(total, x[blockIdx.x * blockDim.x + threadIdx.x]);
}"#;

const LEN: usize = 1 << 14;
const BLOCK: u32 = 256;

fn model_cl(x: &mut [u32], k: u32) {
    for v in x {
        for _ in 0..64 {
            *v = v.wrapping_mul(1_664_525).wrapping_add(k);
        }
    }
}

fn model_hip(x: &mut [u32], k: u32) {
    for v in x {
        for _ in 0..64 {
            *v = v.wrapping_mul(22_695_477).wrapping_add(k);
        }
    }
}

fn model_sum(x: &[u32]) -> u32 {
    x.iter().fold(0, |total, v| total.wrapping_add(*v))
}

struct Rig {
    bridge: Bridge,
    cl_step: clmgr::Kernel,
    cl_sum: clmgr::Kernel,
    hip_step: hip::Function,
    hip_sum: hip::Function,
    queues: Vec<clmgr::Queue>,
    streams: Vec<hip::Stream>,
}

impl Rig {
    fn open() -> Self {
        Self::with(None)
    }

    fn with(grade: Option<Grade>) -> Self {
        let selection = common::selection();
        let options = Options {
            grade,
            ..Options::default()
        };
        let bridge =
            Bridge::open(&selection, &options).expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let program = bridge.programs().get(CL, "").expect("OpenCL kernels");
        let module = hip::rtc::Program::new(HIP)
            .name("shared.hip")
            .compile(bridge.hip_device())
            .expect("HIP kernels");
        Self {
            cl_step: program.kernel("step").expect("step"),
            cl_sum: program.kernel("sum").expect("sum"),
            hip_step: module.function("step").expect("step"),
            hip_sum: module.function("sum").expect("sum"),
            queues: (0..2).map(|_| bridge.queue().expect("a queue")).collect(),
            streams: (0..2).map(|_| bridge.stream().expect("a stream")).collect(),
            bridge,
        }
    }

    /// One rig for the tests that count nothing.
    fn common() -> &'static Self {
        static RIG: OnceLock<Rig> = OnceLock::new();
        RIG.get_or_init(Self::open)
    }

    fn routes(&self) -> Vec<Route> {
        self.bridge.report().working().collect()
    }

    /// One rig for each grade.
    fn of(grade: Grade) -> &'static Self {
        static RIGS: [OnceLock<Rig>; Grade::ALL.len()] = [const { OnceLock::new() }; Grade::ALL.len()];
        let place = Grade::ALL.iter().position(|other| *other == grade);
        RIGS[place.expect("a known grade")].get_or_init(|| Self::with(Some(grade)))
    }

    fn filled(&self, route: Route) -> (Shared<u32>, Vec<u32>) {
        let model: Vec<u32> = (0..LEN as u32).collect();
        let mut shared = self.bridge.alloc_on::<u32>(route, LEN).expect("an allocation");
        shared.upload(&model).expect("an upload");
        (shared, model)
    }

    fn cl_step(&self, shared: &mut Shared<u32>, queue: usize, k: u32, leak: bool) {
        let queue = &self.queues[queue];
        let guard = shared.cl_mut(queue).expect("access for OpenCL");
        let args = [guard.arg(), clmgr::Arg::scalar(&k)];
        // SAFETY: `step` takes a buffer and a uint and touches LEN words.
        unsafe { self.cl_step.launch(queue, clmgr::NdRange::d1(LEN), &args) }.expect("a launch");
        if leak {
            let _ = std::mem::ManuallyDrop::new(guard);
        }
    }

    fn hip_step(&self, shared: &mut Shared<u32>, stream: usize, k: u32, leak: bool) {
        let stream = &self.streams[stream];
        let mut guard = shared.hip_mut(stream).expect("access for HIP");
        let config = hip::LaunchConfig::linear(LEN, BLOCK).expect("a grid");
        // SAFETY: `step` takes a pointer and a uint and touches LEN words.
        unsafe { self.hip_step.launch(stream, config, &[&guard.slice_mut(), &k]) }.expect("a launch");
        if leak {
            let _ = std::mem::ManuallyDrop::new(guard);
        }
    }

    fn cl_sum(&self, shared: &Shared<u32>, queue: usize) -> u32 {
        let meter = self.bridge.meter();
        meter.count_as(Category::Control, || self.cl_sum_of(shared, queue))
    }

    fn cl_sum_of(&self, shared: &Shared<u32>, queue: usize) -> u32 {
        let queue = &self.queues[queue];
        let context = self.bridge.cl_context();
        let mut total = [0];
        let mut counter = clmgr::RegularBuffer::<u32>::new(context, 1).expect("a counter");
        counter.write(queue, &total).expect("a counter");
        let guard = shared.cl(queue).expect("access for OpenCL");
        // SAFETY: `sum` takes a buffer of LEN words and a counter.
        unsafe {
            self.cl_sum
                .launch(queue, clmgr::NdRange::d1(LEN), &[guard.arg(), counter.arg()])
        }
        .expect("a launch");
        counter.read(queue, &mut total).expect("the counter");
        total[0]
    }

    fn hip_sum(&self, shared: &Shared<u32>, stream: usize) -> u32 {
        let meter = self.bridge.meter();
        meter.count_as(Category::Control, || self.hip_sum_of(shared, stream))
    }

    fn hip_sum_of(&self, shared: &Shared<u32>, stream: usize) -> u32 {
        let stream = &self.streams[stream];
        let mut total = [0];
        let mut counter = self.bridge.hip_device().alloc_from(stream, &total).expect("a counter");
        {
            let guard = shared.hip(stream).expect("access for HIP");
            let config = hip::LaunchConfig::linear(LEN, BLOCK).expect("a grid");
            let counter = counter.on_mut(stream).expect("the counter");
            // SAFETY: `sum` takes a pointer to LEN words and a counter.
            unsafe { self.hip_sum.launch(stream, config, &[&guard.slice(), &counter]) }.expect("a launch");
        }
        counter.copy_to_slice(stream, &mut total).expect("the counter");
        total[0]
    }
}

#[derive(Clone, Debug)]
enum Op {
    Cl { queue: usize, k: u32, leak: bool },
    Hip { stream: usize, k: u32, leak: bool },
    ClSum { queue: usize },
    HipSum { stream: usize },
    Upload { seed: u32 },
    Download,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..2_usize, any::<u32>(), any::<bool>())
            .prop_map(|(queue, k, leak)| Op::Cl { queue, k, leak }),
        4 => (0..2_usize, any::<u32>(), any::<bool>())
            .prop_map(|(stream, k, leak)| Op::Hip { stream, k, leak }),
        2 => (0..2_usize).prop_map(|queue| Op::ClSum { queue }),
        2 => (0..2_usize).prop_map(|stream| Op::HipSum { stream }),
        1 => any::<u32>().prop_map(|seed| Op::Upload { seed }),
        1 => Just(Op::Download),
    ]
}

fn any_route() -> impl Strategy<Value = Route> {
    prop::sample::select(Rig::common().routes())
}

fn any_grade() -> impl Strategy<Value = Grade> {
    prop::sample::select(common::grades().to_vec())
}

proptest! {
    #![proptest_config(common::cases(120))]

    /// Two queues, two streams, leaked guards: whatever the interleaving, the bytes are what a
    /// strictly sequential program would have left.
    #[test]
    fn any_interleaving_of_both_apis_equals_the_sequential_program(
        route in any_route(),
        grade in any_grade(),
        ops in prop::collection::vec(op(), 1..24),
    ) {
        let rig = Rig::of(grade);
        let (mut shared, mut model) = rig.filled(route);
        for op in ops {
            match op {
                Op::Cl { queue, k, leak } => {
                    rig.cl_step(&mut shared, queue, k, leak);
                    model_cl(&mut model, k);
                }
                Op::Hip { stream, k, leak } => {
                    rig.hip_step(&mut shared, stream, k, leak);
                    model_hip(&mut model, k);
                }
                Op::ClSum { queue } => prop_assert_eq!(rig.cl_sum(&shared, queue), model_sum(&model)),
                Op::HipSum { stream } => prop_assert_eq!(rig.hip_sum(&shared, stream), model_sum(&model)),
                Op::Upload { seed } => {
                    model = (0..LEN as u32).map(|i| i.wrapping_mul(seed)).collect();
                    shared.upload(&model).expect("an upload");
                }
                Op::Download => {
                    let mut bytes = vec![0; LEN];
                    shared.download(&mut bytes).expect("a download");
                    prop_assert_eq!(&bytes, &model);
                }
            }
        }
        let mut bytes = vec![0; LEN];
        shared.download(&mut bytes).expect("a download");
        prop_assert_eq!(bytes, model);
    }
}

#[test]
fn every_route_is_proven_and_reported() {
    if !common::on_host_or_skip("lists the routes of the software device") {
        return;
    }
    let report = Rig::common().bridge.report();
    assert_eq!(report.routes.len(), Route::ALL.len());
    for route in &report.routes {
        // A CPU's OpenCL has no external memory, and its own lies in no file that could be exported.
        let absent = matches!(route.route, Route::ExternalFd | Route::DmaBuf);
        assert_eq!(route.works(), !absent, "{}: {:?}", route.route, route.outcome);
        assert_eq!(route.impossible, absent, "{}: {:?}", route.route, route.outcome);
        assert!(!route.failed());
    }
    assert!(report.opencl_counted);
}

#[test]
fn a_direct_route_copies_nothing_and_staging_exactly_once_per_change_of_side() {
    let rig = Rig::open();
    let bytes = (LEN * size_of::<u32>()) as u64;
    for route in rig.routes() {
        let (mut shared, _) = rig.filled(route);
        let before = rig.bridge.meter().snapshot();
        rig.cl_step(&mut shared, 0, 1, false);
        rig.cl_step(&mut shared, 1, 2, false);
        rig.hip_step(&mut shared, 0, 3, false);
        rig.hip_step(&mut shared, 1, 4, false);
        rig.cl_step(&mut shared, 0, 5, false);
        rig.hip_sum(&shared, 0);
        rig.cl_sum(&shared, 0);
        let counts = rig.bridge.meter().snapshot().since(&before);
        // Three changes of side, each a copy out and a copy in; the last read finds both sides equal.
        let expected = if route.is_copy() { 3 * 2 * bytes } else { 0 };
        assert_eq!(counts.data_set, expected, "{route}: {:?}", counts.calls);
    }
}

#[test]
fn a_copy_of_the_data_planted_by_anyone_is_counted() {
    let rig = Rig::open();
    let (shared, _) = rig.filled(rig.bridge.route());
    let before = rig.bridge.meter().snapshot();
    let mut bytes = vec![0_u32; LEN];
    let mut spare = rig.bridge.hip_device().alloc::<u32>(LEN).expect("an allocation");
    spare.copy_from_slice(&rig.streams[0], &bytes).expect("a copy");
    let counts = rig.bridge.meter().snapshot().since(&before);
    assert_eq!(counts.data_set, (LEN * 4) as u64);
    let copy = &counts.calls[0];
    assert!(
        copy.function.starts_with("hipMemcpy") && copy.caller.is_none(),
        "{copy:?}"
    );

    let before = rig.bridge.meter().snapshot();
    shared.download(&mut bytes).expect("a download");
    let counts = rig.bridge.meter().snapshot().since(&before);
    assert_eq!((counts.data_set, counts.result), (0, (LEN * 4) as u64));
    let caller = counts.calls[0].caller.as_deref().expect("a download names its caller");
    assert!(caller.contains("shared.rs:"), "{caller}");
}

#[test]
fn two_bridges_count_apart() {
    let (first, second) = (Rig::open(), Rig::open());
    let before = second.bridge.meter().snapshot();
    let (mut shared, _) = first.filled(Route::Staging);
    first.hip_step(&mut shared, 0, 1, false);
    assert!(first.bridge.meter().snapshot().data_set > 0);
    assert_eq!(
        second.bridge.meter().snapshot().since(&before),
        interop::Counts::default()
    );
}

#[test]
fn bridges_can_be_opened_again_and_again() {
    // More often than there are counting slots.
    let selection = common::selection();
    for _ in 0..70 {
        Bridge::open(&selection, &Options::default()).expect("a bridge");
    }
}

#[test]
fn readers_of_both_apis_hold_a_buffer_at_once() {
    let rig = Rig::common();
    for route in rig.routes() {
        let (shared, _) = rig.filled(route);
        let cl = shared.cl(&rig.queues[0]).expect("access for OpenCL");
        let hip = shared.hip(&rig.streams[0]).expect("access for HIP");
        assert_eq!(hip.slice().len(), LEN);
        assert!(!matches!(cl.arg(), clmgr::Arg::Local(_)));
    }
}

#[test]
fn memory_dropped_in_flight_is_freed_only_after_the_work() {
    let rig = Rig::open();
    for route in rig.routes() {
        for leak in [false, true] {
            let (mut shared, _) = rig.filled(route);
            rig.cl_step(&mut shared, 0, 1, leak);
            rig.hip_step(&mut shared, 0, 2, leak);
            rig.cl_step(&mut shared, 1, 3, leak);
            drop(shared);
        }
    }
    for stream in &rig.streams {
        stream.synchronize().expect("no fault");
    }
    assert!(rig.bridge.take_deferred_errors().is_empty());
}

#[test]
fn buffers_move_between_threads() {
    let rig = Rig::common();
    std::thread::scope(|scope| {
        for k in 0..4 {
            scope.spawn(move || {
                let (mut shared, mut model) = rig.filled(rig.bridge.route());
                rig.cl_step(&mut shared, k % 2, k as u32, false);
                rig.hip_step(&mut shared, k % 2, k as u32, false);
                model_cl(&mut model, k as u32);
                model_hip(&mut model, k as u32);
                let mut bytes = vec![0; LEN];
                shared.download(&mut bytes).expect("a download");
                assert_eq!(bytes, model);
            });
        }
    });
}

#[test]
fn residency_tells_device_memory_from_host_memory() {
    let rig = Rig::common();
    for route in rig.routes() {
        let memory = rig.bridge.alloc_on::<u32>(route, LEN).expect("memory");
        let expected = match route {
            Route::HostPinned | Route::SvmFine => Residency::HostPinned,
            Route::Managed => Residency::Managed,
            // No runtime tells where CUDA's memory lies.
            Route::Staging if rig.bridge.report().platform == platform::Platform::Nvidia => Residency::Unknown,
            _ => Residency::Vram,
        };
        assert_eq!(memory.residency(), expected, "{route}");
    }
}

#[test]
fn a_route_over_one_address_has_it_on_both_sides() {
    let rig = Rig::common();
    let one_address = [Route::SvmCoarse, Route::SvmFine, Route::GpuVa, Route::HipPointer];
    for route in rig.routes() {
        if one_address.contains(&route) {
            let (shared, _) = rig.filled(route);
            let (cl, hip) = shared.addresses().expect("both addresses are known");
            assert_eq!(cl, hip, "{route}");
        }
    }
}

#[test]
fn bad_lengths_are_refused_with_both_numbers() {
    let bridge = &Rig::common().bridge;
    assert!(matches!(bridge.alloc::<u32>(0), Err(Error::Empty)));
    assert!(matches!(
        bridge.alloc::<u32>(usize::MAX / 2),
        Err(Error::TooLarge { .. })
    ));
    let mut shared = bridge.alloc::<u32>(4).expect("an allocation");
    let error = shared.upload(&[0; 5]).expect_err("five do not fit four").to_string();
    assert_eq!(
        error,
        "upload: the host slice has 5 elements, but the shared buffer has 4"
    );
    assert!(shared.download(&mut [0; 3]).is_err());
}

#[test]
fn an_impossible_allocation_is_an_error_and_the_bridge_stays_usable() {
    let rig = Rig::common();
    for route in rig.routes() {
        let result = rig.bridge.alloc_on::<u8>(route, 1 << 46);
        assert!(result.is_err(), "{route}: 64 TiB were handed out");
    }
    let (shared, model) = rig.filled(rig.bridge.route());
    assert_eq!(rig.cl_sum(&shared, 0), model_sum(&model));
}

#[test]
fn a_queue_of_another_context_is_refused() {
    let (rig, other) = (Rig::common(), Rig::open());
    let (mut shared, _) = rig.filled(rig.bridge.route());
    let error = shared
        .cl_mut(&other.queues[0])
        .expect_err("another context")
        .to_string();
    assert!(error.contains("another context"), "{error}");
}

#[test]
fn a_route_that_copies_must_be_asked_for() {
    let selection = common::selection();
    for policy in [Policy::DirectOnly, Policy::PreferDirect, Policy::AllowCopy] {
        let options = Options {
            policy,
            ..Options::default()
        };
        let bridge = Bridge::open(&selection, &options).expect("a bridge");
        assert!(!bridge.route().is_copy(), "{policy:?}");
        assert!(!bridge.alloc::<u32>(16).expect("an allocation").is_copy());
    }
    let options = Options {
        route: Some(Route::Staging),
        ..Options::default()
    };
    let bridge = Bridge::open(&selection, &options).expect("a bridge");
    assert!(bridge.alloc::<u32>(16).expect("an allocation").is_copy());
}

#[test]
fn device_numbers_that_do_not_exist_are_refused() {
    let selection = common::selection();
    let options = Options {
        opencl_device: Some(99),
        ..Options::default()
    };
    let error = Bridge::open(&selection, &options)
        .expect_err("no such device")
        .to_string();
    assert!(error.contains("no OpenCL device 99"), "{error}");
    let options = Options {
        hip_device: Some(99),
        ..Options::default()
    };
    assert!(Bridge::open(&selection, &options).is_err());
}

#[test]
fn measurements_are_positive_and_ordered() {
    for grade in common::grades().iter().copied() {
        let cost = interop::measure::handoff(&Rig::of(grade).bridge).expect("a measurement");
        assert!(
            cost.kernel_us > 0.0 && cost.p99_us >= cost.median_us,
            "{grade}: {cost:?}"
        );
        eprintln!("{grade}: {cost:?}");
    }
}

#[test]
fn two_imports_of_one_descriptor_are_the_same_bytes_in_order() {
    let rig = Rig::open();
    let device = rig.bridge.hip_device();
    let memory = device.virtual_memory(LEN * 4).expect("memory");
    // SAFETY: guards of the imports are taken one after the other.
    let [one, two] = [(); 2].map(|()| unsafe { memory.export() }.expect("a descriptor"));
    // SAFETY: the memory has this size; the guards below are taken one after the other.
    let (mut first, mut second) = unsafe {
        (
            rig.bridge.adopt_fd::<u32>(one, 0, LEN).expect("adopted"),
            rig.bridge.adopt_fd::<u32>(two, 0, LEN).expect("adopted"),
        )
    };
    drop(memory);
    let addresses = |shared: &Shared<u32>| shared.hip(&rig.streams[0]).unwrap().slice().as_ptr();
    assert_ne!(addresses(&first), addresses(&second));
    let mut expected: Vec<u32> = (0..LEN as u32).collect();
    first.upload(&expected).expect("an upload");
    for k in 0..20 {
        rig.hip_step(&mut first, 0, k, false);
        model_hip(&mut expected, k);
        rig.cl_step(&mut second, 0, k, false);
        model_cl(&mut expected, k);
        rig.cl_step(&mut first, 1, k, false);
        model_cl(&mut expected, k);
    }
    let mut found = vec![0; LEN];
    second.download(&mut found).expect("a download");
    assert_eq!(found, expected);
    let pipe = std::io::pipe().expect("a pipe").0.into();
    // SAFETY: refused: a pipe is no memory.
    assert!(unsafe { rig.bridge.adopt_fd::<u32>(pipe, 0, 1) }.is_err());
}

#[test]
fn the_other_memory_model_agrees() {
    common::once_more_where_the_host_cannot_touch_device_memory(
        "the_other_memory_model_agrees",
        // They use HIP's memory, which OpenCL does not reach there, or measure.
        &[
            "a_route_over_one_address_has_it_on_both_sides",
            "every_route_is_proven_and_reported",
            "residency_tells_device_memory_from_host_memory",
            "two_imports_of_one_descriptor_are_the_same_bytes_in_order",
            "measurements_are_positive_and_ordered",
        ],
    );
}

#[test]
fn two_values_for_one_foreign_stream_are_one_reader() {
    let options = Options {
        handoff_limit: Some(common::patiently(Duration::from_millis(100))),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::selection(), &options).expect("a bridge");
    let mut data = bridge.alloc::<u32>(64).expect("memory");
    data.upload(&[1; 64]).expect("an upload");
    // SAFETY: the default stream is there for ever.
    let default = || unsafe { hip::Stream::from_raw(bridge.hip_device(), std::ptr::null_mut(), ()) };
    let (first, second) = (default().expect("a stream"), default().expect("a stream"));
    drop(data.hip(&first).expect("access"));
    let guard = data.hip(&second).expect("access");
    drop(first);
    // Many readers, so that those that are gone are looked for.
    let others: Vec<_> = (0..32).map(|_| bridge.stream().expect("a stream")).collect();
    for other in &others {
        drop(data.hip(other).expect("access"));
    }
    let (open, opened) = mpsc::channel::<()>();
    second
        .host_function(move || {
            let _: Result<(), _> = opened.recv();
        })
        .expect("a gate");
    drop(guard);
    let queue = bridge.queue().expect("a queue");
    let late = data.cl_mut(&queue).map(drop);
    assert!(
        matches!(late, Err(Error::HandoffTimeout { .. })),
        "the reader is at work: {late:?}"
    );
    drop(open);
}
