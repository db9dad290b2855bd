//! OpenCL's kernels on HIP's streams.

#[path = "../common/mod.rs"]
mod common;
mod fft;
mod programs;

use std::ffi::c_void;
use std::sync::mpsc;

use clmgr::NdRange;
use hip::LaunchConfig;
use interop::{Bridge, Error, Options, Shared, StreamArg, StreamKernel};
use platform::Platform;
use programs::{Given, Program, programs};

fn bridge() -> Bridge {
    Bridge::open(&common::selection(), &Options::default()).expect("a bridge")
}

/// A kernel of this source, loaded by HIP.
fn loaded(bridge: &Bridge, source: &str, name: &str) -> StreamKernel {
    let program = bridge.programs().get(source, "").expect("it compiles");
    let program = bridge.stream_program(&program).expect("HIP loads it");
    program.kernel(name).expect("it runs on a stream")
}

/// The buffers of a launch, in the order of their arguments.
fn buffers(bridge: &Bridge, program: &Program) -> Vec<Shared<u32>> {
    let words = program.given.iter().filter_map(|given| match given {
        Given::Read(words) | Given::Write(words) => Some(words),
        Given::Value(_) | Given::Local(_) => None,
    });
    words
        .map(|words| {
            let mut buffer = bridge.alloc(words.len()).expect("memory");
            buffer.upload(words).expect("an upload");
            buffer
        })
        .collect()
}

fn contents(buffers: &mut [Shared<u32>]) -> Vec<Vec<u32>> {
    let read = |buffer: &mut Shared<u32>| {
        let mut words = vec![0; buffer.len()];
        buffer.download(&mut words).expect("a download");
        words
    };
    buffers.iter_mut().map(read).collect()
}

/// What the kernel leaves when OpenCL launches it.
fn by_queue(bridge: &Bridge, program: &Program) -> Vec<Vec<u32>> {
    let kernel = bridge
        .programs()
        .get(program.source, program.options)
        .and_then(|built| built.kernel("k"))
        .unwrap_or_else(|error| panic!("{}: {error}", program.name));
    let queue = bridge.queue().expect("a queue");
    let mut buffers = buffers(bridge, program);
    {
        let mut guards = Vec::new();
        for buffer in &mut buffers {
            guards.push(buffer.cl_mut(&queue).expect("the buffer"));
        }
        let mut next = guards.iter();
        let args: Vec<clmgr::Arg<'_>> = program
            .given
            .iter()
            .map(|given| match given {
                Given::Read(_) | Given::Write(_) => next.next().expect("its guard").arg(),
                Given::Value(bytes) => clmgr::Arg::Bytes(bytes),
                Given::Local(bytes) => clmgr::Arg::Local(*bytes),
            })
            .collect();
        // Some drivers do not take the demanded size for one that is not given.
        let info = kernel.info().expect("the kernel tells");
        let range = match info.required_work_group {
            Some(required) => program.range.with_local(required),
            None => program.range,
        };
        // SAFETY: every program was written for its launch.
        unsafe { kernel.launch(&queue, range, &args) }.unwrap_or_else(|error| panic!("{}: {error}", program.name));
    }
    contents(&mut buffers)
}

/// What the kernel leaves when HIP launches it.
fn by_stream(bridge: &Bridge, program: &Program, kernel: &StreamKernel) -> Vec<Vec<u32>> {
    let stream = bridge.stream().expect("a stream");
    let mut buffers = buffers(bridge, program);
    {
        let mut guards = Vec::new();
        for buffer in &mut buffers {
            guards.push(buffer.hip_mut(&stream).expect("the buffer"));
        }
        let mut next = guards.iter_mut();
        let args: Vec<StreamArg<'_>> = program
            .given
            .iter()
            .map(|given| match given {
                Given::Read(_) | Given::Write(_) => next.next().expect("its guard").arg(),
                Given::Value(bytes) => StreamArg::bytes(bytes),
                Given::Local(bytes) => StreamArg::local(*bytes),
            })
            .collect();
        // SAFETY: every program was written for its launch.
        unsafe { kernel.launch(&stream, program.range, &args) }
            .unwrap_or_else(|error| panic!("{}: {error}", program.name));
    }
    contents(&mut buffers)
}

#[test]
fn every_program_does_the_same_on_a_queue_and_on_a_stream() {
    let bridge = bridge();
    let platform = common::selection().platform().to_string();
    let mut ran = 0;
    for program in programs() {
        if let Some(extension) = program.needs
            && !bridge.cl_device().has_extension(extension)
        {
            eprintln!("{}: not here, for there is no {extension}", program.name);
            continue;
        }
        let built = match bridge.programs().get(program.source, program.options) {
            Ok(built) => built,
            // An extension of a language version that this compiler does not have.
            Err(error) if program.options.starts_with("-cl-std") => {
                eprintln!("{}: not here: {error}", program.name);
                continue;
            }
            Err(error) => panic!("{}: {error}", program.name),
        };
        let on_stream = bridge.stream_program(&built).and_then(|loaded| loaded.kernel("k"));
        if let Some((_, reason)) = program.refused.filter(|(there, _)| *there == platform) {
            let error = on_stream.expect_err(program.name).to_string();
            assert!(error.contains(reason) && error.contains("OpenCL queue"), "{error}");
            continue;
        }
        let kernel = on_stream.unwrap_or_else(|error| panic!("{}: {error}", program.name));
        let expected = by_queue(&bridge, &program);
        assert!(
            expected[0].iter().any(|word| *word != 0) || program.given.len() > 1,
            "{}: the kernel wrote something",
            program.name
        );
        assert_eq!(by_stream(&bridge, &program, &kernel), expected, "{}", program.name);
        ran += 1;
    }
    assert!(ran >= 40, "{ran} programs ran");
}

const STEP: &str = "
    kernel void step(global uint *x, uint k) {
        uint i = get_global_id(0), v = x[i];
        for (uint n = 0; n < 64; n++) v = v * 1664525u + k;
        x[i] = v;
    }";

const HIP_STEP: &str = r#"
    extern "C" __global__ void step(unsigned *x, unsigned k) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
        for (unsigned n = 0; n < 64; n++) v = v * 22695477u + k;
        x[i] = v;
    }"#;

const LEN: usize = 1 << 12;

fn stepped(start: impl Fn(usize) -> u32, rounds: u32) -> Vec<u32> {
    let step = |mut v: u32, by: u32, k: u32| {
        for _ in 0..64 {
            v = v.wrapping_mul(by).wrapping_add(k);
        }
        v
    };
    let both = |i| (0..rounds).fold(start(i), |v, k| step(step(v, 1_664_525, k), 22_695_477, k + 1));
    (0..LEN).map(both).collect()
}

/// Queues an OpenCL kernel and a HIP kernel in turns.
fn in_turns(
    stream: &hip::Stream,
    cl: &StreamKernel,
    hip: &hip::Function,
    data: &mut hip::DeviceBuffer<u32>,
    rounds: u32,
) {
    let config = LaunchConfig::linear(LEN, 256).expect("a grid");
    for k in 0..rounds {
        let mut slice = data.on_mut(stream).expect("the buffer");
        let range = NdRange::d1_local(LEN, 64);
        // SAFETY: both take a pointer to LEN numbers, and a number.
        unsafe {
            cl.launch(stream, range, &[slice.reborrow().into(), StreamArg::scalar(&k)])
                .expect("OpenCL's kernel");
            hip.launch(stream, config, &[&slice, &(k + 1)]).expect("HIP's kernel");
        }
    }
}

fn hip_step(bridge: &Bridge) -> hip::Function {
    hip::rtc::Program::new(HIP_STEP)
        .compile(bridge.hip_device())
        .and_then(|module| module.function("step"))
        .expect("HIP's kernel")
}

#[test]
fn kernels_of_both_run_in_the_order_of_the_stream() {
    let bridge = bridge();
    let (cl, hip) = (loaded(&bridge, STEP, "step"), hip_step(&bridge));
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let (bridge, cl, hip) = (&bridge, &cl, &hip);
            scope.spawn(move || {
                let stream = bridge.stream().expect("a stream");
                let start: Vec<u32> = (0..LEN as u32).map(|i| i ^ thread << 20).collect();
                let mut data = bridge.hip_device().alloc_from(&stream, &start).expect("memory");
                in_turns(&stream, cl, hip, &mut data, 9);
                let mut seen = vec![0; LEN];
                data.copy_to_slice(&stream, &mut seen).expect("a copy");
                assert_eq!(seen, stepped(|i| start[i], 9));
            });
        }
    });
}

#[test]
fn a_captured_launch_runs_with_the_graph_as_often_as_that() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let start = vec![1_u32; LEN];
    let mut data = bridge.hip_device().alloc_from(&stream, &start).expect("memory");
    let graph = {
        let (cl, hip) = (loaded(&bridge, STEP, "step"), hip_step(&bridge));
        stream.capture(|stream| {
            in_turns(stream, &cl, &hip, &mut data, 2);
            Ok(())
        })
        // The graph keeps both kernels loaded.
    };
    let graph = graph.expect("a graph");
    assert_eq!(graph.node_count().expect("a number"), 4);
    let graph = graph.instantiate().expect("it is ready");
    let mut seen = vec![0; LEN];
    data.copy_to_slice(&stream, &mut seen).expect("a copy");
    assert_eq!(seen, start, "a capture runs nothing");
    for _ in 0..3 {
        let slice = data.on_mut(&stream).expect("the buffer");
        // SAFETY: the graph touches this one buffer.
        unsafe { graph.launch(&stream, &[&slice]) }.expect("a run");
    }
    data.copy_to_slice(&stream, &mut seen).expect("a copy");
    let expected = (0..3).fold(start, |now, _| stepped(|i| now[i], 2));
    assert_eq!(seen, expected);
}

#[test]
fn nothing_is_copied_and_nothing_is_handed_over() {
    let bridge = bridge();
    let (cl, stream) = (loaded(&bridge, STEP, "step"), bridge.stream().expect("a stream"));
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    data.upload(&vec![3; LEN]).expect("an upload");
    let before = bridge.meter().snapshot();
    {
        let mut guard = data.hip_mut(&stream).expect("the buffer");
        for k in 0..5_u32 {
            let args = [guard.arg(), StreamArg::scalar(&k)];
            // SAFETY: a pointer to LEN numbers, and a number.
            unsafe { cl.launch(&stream, NdRange::d1(LEN), &args) }.expect("a launch");
        }
    }
    stream.synchronize().expect("the kernels ran");
    assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
}

/// The kernel that bad launches are made of.
const PLAIN: &str = "
    kernel void plain(global uint *o, global const uint *x, uint k, local uint *t) {
        uint l = get_local_id(0);
        t[l] = x[get_global_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        o[get_global_id(0)] = t[l] + k;
    }
    kernel __attribute__((reqd_work_group_size(8, 1, 1))) void eights(global uint *o) { o[get_global_id(0)] = 1; }";

#[test]
fn bad_launches_are_refused_before_they_are_queued() {
    let bridge = bridge();
    let (plain, eights) = (loaded(&bridge, PLAIN, "plain"), loaded(&bridge, PLAIN, "eights"));
    let (stream, other) = (bridge.stream().expect("one"), bridge.stream().expect("another"));
    let device = bridge.hip_device();
    let mut out = device.alloc_from(&stream, &[0_u32; 64]).expect("memory");
    let input = device.alloc_from(&stream, &[5_u32; 64]).expect("memory");
    let elsewhere = device.alloc_from(&other, &[5_u32; 64]).expect("memory");
    let range = NdRange::d1_local(64, 16);
    let (k, wide) = (7_u32, 7_u64);

    let x: StreamArg<'_> = input.on(&stream).expect("input").into();
    let y: StreamArg<'_> = elsewhere.on(&other).expect("input").into();
    let local = StreamArg::local(64);
    let number = StreamArg::scalar(&k);
    let mut out_slice = out.on_mut(&stream).expect("output");
    {
        let o: StreamArg<'_> = out_slice.reborrow().into();
        let refusal = |kernel: &StreamKernel, range: NdRange, args: &[StreamArg<'_>]| {
            // SAFETY: refused; and if it is not, the memory is large enough.
            let launched = unsafe { kernel.launch(&stream, range, args) };
            launched.expect_err("a bad launch").to_string()
        };
        let large = plain.info().max_work_group * 2;
        let most = usize::try_from(bridge.cl_device().local_bytes()).expect("a size");
        let cases: [(&str, NdRange, &[StreamArg<'_>]); 14] = [
            (
                "bytes of local memory; the device has",
                range,
                &[o, x, number, StreamArg::local(most + 1)],
            ),
            ("got 3 arguments, it takes 4", range, &[o, x, number]),
            ("got 5 arguments, it takes 4", range, &[o, x, number, local, number]),
            ("argument 1", range, &[o, number, number, local]),
            ("argument 2", range, &[o, x, StreamArg::scalar(&wide), local]),
            ("argument 2", range, &[o, x, x, local]),
            ("argument 3: it takes local memory", range, &[o, x, number, number]),
            (
                "argument 3: local memory of no bytes",
                range,
                &[o, x, number, StreamArg::local(0)],
            ),
            ("argument 0: read-only memory", range, &[x, x, number, local]),
            ("argument 1 of `plain`", range, &[o, y, number, local]),
            ("do not divide", NdRange::d1_local(60, 16), &[o, x, number, local]),
            ("no work-item", NdRange::d1(0), &[o, x, number, local]),
            ("of at most", NdRange::d1_local(large, large), &[o, x, number, local]),
            (
                "the offset",
                NdRange::d1(64).with_offset([usize::MAX, 0, 0]),
                &[o, x, number, local],
            ),
        ];
        for (part, range, args) in cases {
            let error = refusal(&plain, range, args);
            assert!(error.contains(part), "{part}: {error}");
            assert!(error.contains("plain"), "the kernel is named: {error}");
        }
        for range in [NdRange::d1_local(64, 16), NdRange::d1(60)] {
            let error = refusal(&eights, range, &[o]);
            assert!(error.contains("[8, 1, 1]"), "{error}");
        }
    }
    // Stream and memory are as good as before.
    let args = [out_slice.reborrow().into(), x, number, local];
    // SAFETY: 64 elements each, and local memory for 16.
    unsafe { plain.launch(&stream, range, &args) }.expect("a good launch");
    let mut seen = [0; 64];
    out.copy_to_slice(&stream, &mut seen).expect("a copy");
    assert_eq!(seen, [12; 64]);
}

#[test]
fn kernels_and_programs_that_cannot_cross_are_refused_by_name() {
    let bridge = bridge();
    let program = bridge.programs().get(PLAIN, "").expect("it compiles");
    let loaded = bridge.stream_program(&program).expect("HIP loads it");
    let error = loaded.kernel("plane").expect_err("no such kernel").to_string();
    assert!(error.contains("`plane`") && error.contains("eights"), "{error}");

    let other = clmgr::Context::new(bridge.cl_device()).expect("another context");
    let foreign = clmgr::Program::build(&other, PLAIN, "").expect("it compiles");
    let error = bridge.stream_program(&foreign).expect_err("another context's");
    assert!(
        matches!(error, Error::Cl(clmgr::Error::ContextMismatch { .. })),
        "{error}"
    );

    if bridge.cl_device().info().is_ok_and(|info| info.images) {
        let source = "kernel void look(read_only image2d_t i, global float *o) {
            const sampler_t s = CLK_FILTER_NEAREST; o[0] = read_imagef(i, s, (int2)(0, 0)).x; }";
        let program = bridge.programs().get(source, "").expect("it compiles");
        let refused = bridge.stream_program(&program).and_then(|loaded| loaded.kernel("look"));
        let error = refused.expect_err("it takes an image").to_string();
        assert!(
            error.contains("`look`") && error.contains("image") && error.contains("queue"),
            "{error}"
        );
    }
}

#[test]
fn memory_that_was_freed_is_refused_on_the_host_platform() {
    if !common::on_host_or_skip("a GPU does not know which memory a pointer leads to") {
        return;
    }
    let bridge = bridge();
    let (step, stream) = (loaded(&bridge, STEP, "step"), bridge.stream().expect("a stream"));
    let freed = {
        let mut data = bridge.hip_device().alloc_zeroed::<u32>(LEN).expect("memory");
        data.on_mut(&stream).expect("the buffer").as_mut_ptr()
    };
    // SAFETY: refused, because it leads to no memory any more.
    let error = unsafe {
        let slice = hip::DeviceSliceMut::from_raw_parts(freed.cast::<c_void>().cast::<u32>(), LEN, &stream);
        step.launch(&stream, NdRange::d1(LEN), &[slice.into(), StreamArg::scalar(&1_u32)])
    };
    let error = error.expect_err("freed memory");
    assert!(matches!(error, Error::Hip(_)), "{error}");
    stream.synchronize().expect("nothing was queued");
}

#[test]
fn programs_and_kernels_may_go_while_their_launches_are_queued() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let start = vec![5_u32; LEN];
    let mut data = bridge.hip_device().alloc_from(&stream, &start).expect("memory");
    // Loading a module may wait for the device.
    let (cl, hip) = (loaded(&bridge, STEP, "step"), hip_step(&bridge));
    let (open, gate) = mpsc::channel::<()>();
    stream
        .host_function(move || {
            let _ = gate.recv();
        })
        .expect("a host function");
    in_turns(&stream, &cl, &hip, &mut data, 3);
    // The last owners wait for the stream, so the gate opens before they go.
    drop(open);
    drop((cl, hip));
    let mut seen = vec![0; LEN];
    data.copy_to_slice(&stream, &mut seen).expect("a copy");
    assert_eq!(seen, stepped(|i| start[i], 3));
}

/// An OpenCL kernel on two queues and the same one on two streams, in turns on one shared buffer, beside readers that
/// never end.
#[test]
fn launches_on_a_stream_are_handed_over_like_other_work_there() {
    // AMD's stream waits for a word by a kernel that spins: each round that is queued behind it costs an emulated GPU
    // several times as much as the one before.
    let rounds = match common::selection().platform() {
        Platform::Amd => 4,
        _ => 40,
    };
    for grade in common::grades() {
        let bridge = bridge().with_grade(*grade).expect("a proven grade");
        let on_stream = loaded(&bridge, STEP, "step");
        let built = bridge.programs().get(STEP, "").expect("it compiles");
        let on_queue = built.kernel("step").expect("the kernel");
        let queues = [0, 1].map(|_| bridge.queue().expect("a queue"));
        let streams = [0, 1].map(|_| bridge.stream().expect("a stream"));
        let mut data = bridge.alloc::<u32>(LEN).expect("memory");
        let start: Vec<u32> = (0..LEN as u32).collect();
        data.upload(&start).expect("an upload");
        let mut expected = start;
        for k in 0..rounds {
            let which = (k / 2 % 2) as usize;
            let range = NdRange::d1_local(LEN, 64);
            if k % 2 == 0 {
                let guard = data.cl_mut(&queues[which]).expect("the buffer");
                let args = [guard.arg(), clmgr::Arg::scalar(&k)];
                // SAFETY: a pointer to LEN numbers, and a number.
                unsafe { on_queue.launch(&queues[which], range, &args) }.expect("a launch");
            } else {
                let mut guard = data.hip_mut(&streams[which]).expect("the buffer");
                let args = [guard.arg(), StreamArg::scalar(&k)];
                // SAFETY: as above.
                unsafe { on_stream.launch(&streams[which], range, &args) }.expect("a launch");
            }
            if k % 3 == 0 {
                // A reader whose guard never ends.
                std::mem::forget(data.cl(&queues[1 - which]).expect("the buffer"));
            }
            for word in &mut expected {
                for _ in 0..64 {
                    *word = word.wrapping_mul(1_664_525).wrapping_add(k);
                }
            }
        }
        let mut seen = vec![0; LEN];
        data.download(&mut seen).expect("a download");
        assert_eq!(seen, expected, "{grade}");
    }
}
