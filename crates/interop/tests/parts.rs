//! Parts of one buffer: OpenCL on one and HIP on another at once, against a model on the host.

mod common;

use std::sync::OnceLock;
use std::time::Duration;

use interop::{Bridge, Error, Grade, Options, Part, PartMut, Route, Shared};
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
extern "C" __global__ void step(unsigned int *x, unsigned int k, unsigned int len)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len)
        return;
    unsigned int v = x[i];
    for (unsigned int n = 0; n < 64; ++n)
        v = v * 22695477u + k;
    x[i] = v;
}
extern "C" __global__ void sum(const unsigned int *x, unsigned int *total, unsigned int len)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len)
        atomicAdd(total, x[i]);
}"#;

/// Parts begin at multiples of this, which every device takes for a part of a buffer object.
const GRAIN: usize = 64;
const GRAINS: usize = 64;
const LEN: usize = GRAIN * GRAINS;

fn model_step(x: &mut [u32], factor: u32, k: u32) {
    for v in x {
        for _ in 0..64 {
            *v = v.wrapping_mul(factor).wrapping_add(k);
        }
    }
}

fn model_cl(x: &mut [u32], k: u32) {
    model_step(x, 1_664_525, k);
}

fn model_hip(x: &mut [u32], k: u32) {
    model_step(x, 22_695_477, k);
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
    queues: [clmgr::Queue; 2],
    streams: [hip::Stream; 2],
}

impl Rig {
    fn with(grade: Grade, limit: Duration) -> Self {
        let options = Options {
            grade: Some(grade),
            handoff_limit: Some(limit),
            ..Options::default()
        };
        let bridge =
            Bridge::open(&common::host(), &options).expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let program = bridge.programs().get(CL, "").expect("OpenCL kernels");
        let module = hip::rtc::Program::new(HIP)
            .name("parts.hip")
            .compile(bridge.hip_device())
            .expect("HIP kernels");
        Self {
            cl_step: program.kernel("step").expect("step"),
            cl_sum: program.kernel("sum").expect("sum"),
            hip_step: module.function("step").expect("step"),
            hip_sum: module.function("sum").expect("sum"),
            queues: [(); 2].map(|()| bridge.queue().expect("a queue")),
            streams: [(); 2].map(|()| bridge.stream().expect("a stream")),
            bridge,
        }
    }

    fn of(grade: Grade) -> &'static Self {
        static RIGS: [OnceLock<Rig>; Grade::ALL.len()] = [const { OnceLock::new() }; Grade::ALL.len()];
        let place = Grade::ALL.iter().position(|other| *other == grade);
        RIGS[place.expect("a known grade")].get_or_init(|| Self::with(grade, Duration::from_secs(30)))
    }

    fn filled(&self, route: Route) -> (Shared<u32>, Vec<u32>) {
        let model: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(77)).collect();
        let shared = self.bridge.alloc_on::<u32>(route, LEN);
        let mut shared = shared.expect("an allocation");
        shared.upload(&model).expect("an upload");
        (shared, model)
    }

    fn launch_cl(&self, queue: &clmgr::Queue, memory: clmgr::Arg<'_>, len: usize, k: u32) {
        let (range, args) = (clmgr::NdRange::d1(len), [memory, clmgr::Arg::scalar(&k)]);
        // SAFETY: `step` takes a buffer of at least `len` words and a uint.
        unsafe { self.cl_step.launch(queue, range, &args) }.expect("a launch");
    }

    fn launch_hip(&self, stream: &hip::Stream, memory: hip::DeviceSliceMut<'_, u32>, k: u32) {
        let len = memory.len() as u32;
        let config = hip::LaunchConfig::linear(memory.len(), 64).expect("a grid");
        // SAFETY: `step` takes a pointer to `len` words and two numbers, and stays below `len`.
        unsafe { self.hip_step.launch(stream, config, &[&memory, &k, &len]) }.expect("a launch");
    }

    fn cl(&self, part: &mut PartMut<'_, u32>, which: usize, k: u32) {
        let (queue, len) = (&self.queues[which], part.len());
        let guard = part.cl_mut(queue).expect("access for OpenCL");
        self.launch_cl(queue, guard.arg(), len, k);
    }

    fn hip(&self, part: &mut PartMut<'_, u32>, which: usize, k: u32) {
        let stream = &self.streams[which];
        let mut guard = part.hip_mut(stream).expect("access for HIP");
        self.launch_hip(stream, guard.slice_mut(), k);
    }

    fn sums(&self, cl: &Part<'_, u32>, hip: &Part<'_, u32>, which: usize) -> (u32, u32) {
        let (queue, stream) = (&self.queues[which], &self.streams[which]);
        let mut totals = ([0], [0]);
        let context = self.bridge.cl_context();
        let mut of_cl = clmgr::RegularBuffer::<u32>::new(context, 1).expect("a counter");
        of_cl.write(queue, &totals.0).expect("a counter");
        let mut of_hip = stream.device().alloc_from(stream, &totals.1).expect("a counter");
        {
            // Both at once.
            let (cl_guard, hip_guard) = (cl.cl(queue).expect("access"), hip.hip(stream).expect("access"));
            let range = clmgr::NdRange::d1(cl.len());
            // SAFETY: `sum` takes a buffer of as many words as work-items, and a counter.
            unsafe { self.cl_sum.launch(queue, range, &[cl_guard.arg(), of_cl.arg()]) }.expect("a launch");
            let config = hip::LaunchConfig::linear(hip.len(), 64).expect("a grid");
            let (counter, len) = (of_hip.on_mut(stream).expect("a counter"), hip.len() as u32);
            // SAFETY: `sum` takes a pointer to `len` words, a counter and `len`.
            unsafe {
                self.hip_sum
                    .launch(stream, config, &[&hip_guard.slice(), &counter, &len])
            }
            .expect("a launch");
        }
        of_cl.read(queue, &mut totals.0).expect("the counter");
        of_hip.copy_to_slice(stream, &mut totals.1).expect("the counter");
        (totals.0[0], totals.1[0])
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// OpenCL on one side of the middle, HIP on the other, both guards alive.
    Both {
        middle: usize,
        cl_is_left: bool,
        which: usize,
        k: u32,
    },
    /// OpenCL, HIP and OpenCL on three parts with gaps, guards taken in another order.
    Three {
        ends: [usize; 6],
        which: usize,
        k: u32,
    },
    Whole {
        is_cl: bool,
        which: usize,
        k: u32,
    },
    /// Part of a guard of the whole.
    Range {
        is_cl: bool,
        begin: usize,
        end: usize,
        which: usize,
        k: u32,
    },
    /// Parts that may overlap, to be read.
    Sums {
        ends: [usize; 4],
        which: usize,
    },
}

fn ends<const N: usize>(most: usize) -> impl Strategy<Value = [usize; N]> {
    prop::collection::btree_set(0..=most, N).prop_map(|set| {
        let mut all = set.into_iter().map(|end| end * GRAIN);
        std::array::from_fn(|_| all.next().expect("as many as asked for"))
    })
}

fn op() -> impl Strategy<Value = Op> {
    let (which, k) = (|| 0..2_usize, any::<u32>);
    prop_oneof![
        4 => (1..GRAINS, any::<bool>(), which(), k()).prop_map(|(middle, cl_is_left, which, k)| {
            Op::Both { middle: middle * GRAIN, cl_is_left, which, k }
        }),
        3 => (ends::<6>(GRAINS), which(), k()).prop_map(|(ends, which, k)| Op::Three { ends, which, k }),
        1 => (any::<bool>(), which(), k()).prop_map(|(is_cl, which, k)| Op::Whole { is_cl, which, k }),
        2 => (any::<bool>(), ends::<2>(GRAINS), which(), k()).prop_map(|(is_cl, [begin, end], which, k)| {
            Op::Range { is_cl, begin, end, which, k }
        }),
        1 => (ends::<2>(GRAINS), ends::<2>(GRAINS), which())
            .prop_map(|([a, b], [c, d], which)| Op::Sums { ends: [a, b, c, d], which }),
    ]
}

fn divisible() -> Vec<Route> {
    let report = Rig::of(Grade::Host).bridge.report();
    let working = report.working();
    working.filter(|route| *route != Route::ExternalFd).collect()
}

proptest! {
    #![proptest_config(common::cases(100))]

    #[test]
    fn parts_on_both_apis_at_once_leave_what_the_sequential_program_would(
        route in prop::sample::select(divisible()),
        grade in prop::sample::select(common::grades().to_vec()),
        ops in prop::collection::vec(op(), 1..24),
    ) {
        let rig = Rig::of(grade);
        let (mut shared, mut model) = rig.filled(route);
        for op in ops {
            match op {
                Op::Both { middle, cl_is_left, which, k } => {
                    let (mut left, mut right) = shared.split_at_mut(middle).expect("two parts");
                    let (of_left, of_right) = model.split_at_mut(middle);
                    let (cl, hip) = if cl_is_left { (&mut left, &mut right) } else { (&mut right, &mut left) };
                    let (of_cl, of_hip) = if cl_is_left { (of_left, of_right) } else { (of_right, of_left) };
                    let len = cl.len();
                    let (queue, stream) = (&rig.queues[which], &rig.streams[which]);
                    let on_cl = cl.cl_mut(queue).expect("access for OpenCL");
                    let mut on_hip = hip.hip_mut(stream).expect("access for HIP");
                    rig.launch_cl(queue, on_cl.arg(), len, k);
                    rig.launch_hip(stream, on_hip.slice_mut(), k);
                    model_cl(of_cl, k);
                    model_hip(of_hip, k);
                }
                Op::Three { ends: [a, b, c, d, e, f], which, k } => {
                    let [mut one, mut two, mut three] =
                        shared.parts_mut([a..b, c..d, e..f]).expect("three parts");
                    rig.cl(&mut three, which, k);
                    rig.hip(&mut two, which, k);
                    rig.cl(&mut one, 1 - which, k);
                    model_cl(&mut model[e..f], k);
                    model_hip(&mut model[c..d], k);
                    model_cl(&mut model[a..b], k);
                }
                Op::Whole { is_cl: true, which, k } => {
                    let queue = &rig.queues[which];
                    rig.launch_cl(queue, shared.cl_mut(queue).expect("access").arg(), LEN, k);
                    model_cl(&mut model, k);
                }
                Op::Whole { is_cl: false, which, k } => {
                    let stream = &rig.streams[which];
                    rig.launch_hip(stream, shared.hip_mut(stream).expect("access").slice_mut(), k);
                    model_hip(&mut model, k);
                }
                Op::Range { is_cl: true, begin, end, which, k } => {
                    let queue = &rig.queues[which];
                    let guard = shared.cl_mut(queue).expect("access");
                    let range = guard.range(begin..end).expect("a range");
                    rig.launch_cl(queue, range.arg(), end - begin, k);
                    model_cl(&mut model[begin..end], k);
                }
                Op::Range { is_cl: false, begin, end, which, k } => {
                    let stream = &rig.streams[which];
                    let mut guard = shared.hip_mut(stream).expect("access");
                    rig.launch_hip(stream, guard.range_mut(begin..end).expect("a range"), k);
                    model_hip(&mut model[begin..end], k);
                }
                Op::Sums { ends: [a, b, c, d], which } => {
                    let (cl, hip) = (shared.part(a..b).expect("a part"), shared.part(c..d).expect("a part"));
                    let found = rig.sums(&cl, &hip, which);
                    prop_assert_eq!(found, (model_sum(&model[a..b]), model_sum(&model[c..d])));
                }
            }
        }
        let mut bytes = vec![0; LEN];
        shared.download(&mut bytes).expect("a download");
        prop_assert_eq!(bytes, model);
    }
}

#[test]
fn hip_does_not_wait_for_opencl_on_another_part() {
    let rig = Rig::with(Grade::Host, Duration::from_millis(300));
    let (mut shared, mut model) = rig.filled(Route::SvmCoarse);
    let held = clmgr::UserEvent::new(rig.bridge.cl_context()).expect("an event");
    rig.queues[0].wait_for(held.event()).expect("a wait");
    let (mut left, mut right) = shared.split_at_mut(LEN / 2).expect("two parts");
    rig.cl(&mut left, 0, 5);
    // The queue stands still, and the other part is worked on to its end.
    rig.hip(&mut right, 0, 6);
    rig.streams[0].synchronize().expect("HIP's work ends");
    // The same part has to wait for it.
    let error = left.hip_mut(&rig.streams[0]).expect_err("the queue is held");
    assert!(matches!(error, Error::HandoffTimeout { .. }), "{error}");
    held.complete().expect("an event");
    rig.hip(&mut left, 0, 7);
    model_cl(&mut model[..LEN / 2], 5);
    model_hip(&mut model[..LEN / 2], 7);
    model_hip(&mut model[LEN / 2..], 6);
    let mut bytes = vec![0; LEN];
    shared.download(&mut bytes).expect("a download");
    assert_eq!(bytes, model);
}

#[test]
fn more_parts_than_are_told_apart_are_all_waited_for() {
    if !common::grade_or_skip(Grade::Callback) {
        return;
    }
    let rig = Rig::of(Grade::Callback);
    let (mut shared, mut model) = rig.filled(Route::SvmCoarse);
    for grain in (0..GRAINS).rev() {
        let range = grain * GRAIN..(grain + 1) * GRAIN;
        let mut part = shared.part_mut(range.clone()).expect("a part");
        rig.cl(&mut part, 0, grain as u32);
        model_cl(&mut model[range], grain as u32);
    }
    rig.launch_hip(
        &rig.streams[0],
        shared.hip_mut(&rig.streams[0]).expect("access").slice_mut(),
        3,
    );
    model_hip(&mut model, 3);
    let mut bytes = vec![0; LEN];
    shared.download(&mut bytes).expect("a download");
    assert_eq!(bytes, model);
}

#[test]
fn who_has_read_one_part_still_waits_for_the_other() {
    if !common::grade_or_skip(Grade::Callback) {
        return;
    }
    let rig = Rig::of(Grade::Callback);
    let (queue, stream) = (&rig.queues[0], &rig.streams[0]);
    let (mut shared, mut model) = rig.filled(Route::SvmCoarse);
    rig.cl(&mut shared.part_mut(0..LEN / 2).expect("a part"), 0, 5);
    let left = shared.part(0..LEN / 2).expect("a part");
    let _read = left.hip(stream).expect("access");
    stream.synchronize().expect("the queue has ended");
    let held = clmgr::UserEvent::new(rig.bridge.cl_context()).expect("an event");
    queue.wait_for(held.event()).expect("a wait");
    rig.cl(&mut shared.part_mut(LEN / 2..LEN).expect("a part"), 0, 6);
    let mut total = stream.device().alloc_from(stream, &[0]).expect("a counter");
    {
        let all = shared.hip(stream).expect("access");
        let config = hip::LaunchConfig::linear(LEN, 64).expect("a grid");
        let (counter, len) = (total.on_mut(stream).expect("a counter"), LEN as u32);
        // SAFETY: `sum` takes a pointer to `len` words, a counter and `len`.
        unsafe { rig.hip_sum.launch(stream, config, &[&all.slice(), &counter, &len]) }.expect("a launch");
    }
    assert!(!stream.is_idle().expect("an answer"), "it waits for the queue");
    held.complete().expect("an event");
    let mut found = [0];
    total.copy_to_slice(stream, &mut found).expect("the counter");
    model_cl(&mut model[..LEN / 2], 5);
    model_cl(&mut model[LEN / 2..], 6);
    assert_eq!(found[0], model_sum(&model));
}

#[test]
fn a_buffer_object_is_divided_only_where_the_device_can() {
    let rig = Rig::of(Grade::Host);
    let alignment = rig.bridge.cl_device().sub_buffer_alignment();
    let (mut shared, _) = rig.filled(Route::GpuVa);
    let text = {
        let guard = shared.cl(&rig.queues[0]).expect("access");
        assert!(guard.range(0..3).is_ok(), "from the begin on");
        assert!(guard.range(alignment / 4..alignment / 4 + 1).is_ok());
        let Err(error) = guard.range(1..3) else {
            panic!("byte 4 is no place for a part");
        };
        error.to_string()
    };
    assert!(
        text.starts_with(&format!(
            "the range begins at byte 4 of a buffer object, which must be a multiple of {alignment}"
        )),
        "{text}"
    );
    let mut part = shared.part_mut(1..3).expect("HIP has no such rule");
    assert_eq!(part.hip_mut(&rig.streams[0]).expect("access").slice_mut().len(), 2);
    assert!(matches!(part.cl_mut(&rig.queues[0]), Err(Error::SubBufferStart { .. })));
    // Pointers begin anywhere.
    let (shared, _) = rig.filled(Route::SvmCoarse);
    let guard = shared.cl(&rig.queues[0]).expect("access");
    assert!(guard.range(1..3).is_ok());
    assert!(guard.mem_range(GRAIN..2 * GRAIN).is_ok(), "a part of its view");
}

#[test]
fn bad_parts_are_refused_in_one_line() {
    let rig = Rig::of(Grade::Host);
    let (mut shared, _) = rig.filled(Route::SvmCoarse);
    let len = shared.len();
    let text = |error: Error| error.to_string();
    assert_eq!(
        text(shared.part(5..len + 1).expect_err("beyond the end")),
        format!("the range 5..{} is outside 0..{len}", len + 1)
    );
    assert!(matches!(shared.part(5..5), Err(Error::Empty)));
    assert!(matches!(shared.split_at_mut(0), Err(Error::Empty)));
    assert!(matches!(shared.split_at_mut(len), Err(Error::Empty)));
    assert_eq!(
        text(shared.parts_mut([8..12, 0..4, 3..8]).expect_err("they overlap")),
        "the parts 0..4 and 3..8 overlap; parts of one buffer must be disjoint"
    );
    let part = shared.part_mut(8..16).expect("a part");
    let (left, right) = part.split_at_mut(2).expect("two parts");
    assert_eq!((left.range(), right.range()), (8..10, 10..16));
    assert!(left.split_at_mut(3).is_err());
    let (mut copied, _) = rig.filled(Route::Staging);
    let error = text(copied.part(0..4).expect_err("less than a transfer"));
    assert!(
        error.starts_with("route staging copies each part separately, and bytes 0..16 do not"),
        "{error}"
    );
    let last = copied.part_mut(LEN - GRAIN..LEN).expect("a part");
    assert!(matches!(last.split_at_mut(3), Err(Error::PartGrid { .. })));
}

#[test]
fn a_change_of_side_copies_the_bytes_of_the_part_and_no_others() {
    let rig = Rig::of(Grade::Host);
    let (mut shared, mut model) = rig.filled(Route::Staging);
    let moved = |before: &interop::Counts| rig.bridge.meter().snapshot().since(before).data_set;
    let quarter = LEN / 4;
    let word = size_of::<u32>() as u64;
    // Both halves of a copy count: out of one side and into the other.
    let ways = 2 * word;
    {
        let (mut left, mut right) = shared.split_at_mut(LEN / 2).expect("two parts");
        let before = rig.bridge.meter().snapshot();
        rig.hip(&mut left, 0, 3);
        assert_eq!(moved(&before), ways * LEN as u64 / 2, "the left half to HIP");
        rig.cl(&mut right, 0, 4);
        assert_eq!(moved(&before), ways * LEN as u64 / 2, "the right is there");
        model_hip(&mut model[..LEN / 2], 3);
        model_cl(&mut model[LEN / 2..], 4);
    }
    let before = rig.bridge.meter().snapshot();
    rig.cl(&mut shared.part_mut(quarter..3 * quarter).expect("a part"), 1, 5);
    assert_eq!(moved(&before), ways * quarter as u64, "what HIP had of it");
    model_cl(&mut model[quarter..3 * quarter], 5);
    let before = rig.bridge.meter().snapshot();
    let whole = shared.hip(&rig.streams[0]).expect("access");
    assert_eq!(moved(&before), ways * 3 * quarter as u64, "all but the first");
    drop(whole);
    let mut bytes = vec![0; LEN];
    shared.download(&mut bytes).expect("a download");
    assert_eq!(bytes, model);
}

#[test]
fn the_other_memory_model_agrees() {
    common::once_more_where_the_host_cannot_touch_device_memory("the_other_memory_model_agrees", &[]);
}
