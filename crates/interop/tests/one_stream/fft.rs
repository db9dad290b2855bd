//! clmgr's FFT on HIP's streams.

use clmgr::C32;
use clmgr_fft::{Builder, Direction, Layout, Plan, Sample, Way};
use interop::{Bridge, Error};

use super::common;

/// Numbers without a pattern, between -1 and 1.
fn noise(len: usize) -> Vec<C32> {
    let part = |i: usize| ((i.wrapping_mul(0x9E37_79B9) >> 7) & 0xFFFF) as f32 / 32_768.0 - 1.0;
    (0..len).map(|i| C32::new(part(2 * i + 1), part(2 * i + 2))).collect()
}

/// What the plan makes of this on an OpenCL queue, out of place and in place.
fn by_queue(bridge: &Bridge, plan: &Plan, direction: Direction, input: &[C32]) -> [Vec<C32>; 2] {
    let queue = bridge.queue().expect("a queue");
    let (mut data, mut out) = (
        bridge.alloc(input.len()).expect("memory"),
        bridge.alloc(input.len()).expect("memory"),
    );
    data.upload(input).expect("an upload");
    {
        let (data, out) = (data.cl(&queue).expect("data"), out.cl_mut(&queue).expect("out"));
        // SAFETY: both hold the plan's numbers.
        unsafe { plan.enqueue(&queue, direction, data.arg(), out.arg()) }.expect("an FFT");
    }
    let mut result = vec![C32::default(); input.len()];
    out.download(&mut result).expect("a download");
    {
        let data = data.cl_mut(&queue).expect("data");
        // SAFETY: it holds the plan's numbers.
        unsafe { plan.enqueue(&queue, direction, data.arg(), data.arg()) }.expect("an FFT");
    }
    let mut in_place = vec![C32::default(); input.len()];
    data.download(&mut in_place).expect("a download");
    [result, in_place]
}

#[test]
fn a_plan_does_the_same_on_a_queue_and_on_a_stream() {
    let bridge = super::bridge();
    let stream = bridge.stream().expect("a stream");
    let device = bridge.hip_device();
    let (context, programs) = (bridge.cl_context(), bridge.programs());
    let mut plans = vec![(360, Way::Passes, 3)];
    // A processor's scratch memory takes the batch in chunks; a GPU's is larger than a test should be.
    if common::on_host() {
        plans.push((4096, Way::Passes, 700));
    }
    for (len, batch) in [(8, 5), (96, 7), (1000, 3), (4096, 2), (1 << 17, 1), (120_000, 2)] {
        let plan = Plan::new(context, programs, len, batch).expect("a plan");
        plans.push((len, plan.way(), batch));
    }
    for (len, way, batch) in plans {
        let plan = Plan::builder(len)
            .batch(batch)
            .way(way)
            .build(context, programs)
            .expect("a plan");
        let fft = bridge.stream_fft(&plan).expect("it runs on streams");
        let input = noise(len * batch);
        let mut seen = vec![C32::default(); input.len()];
        for direction in [Direction::Forward, Direction::Inverse] {
            let [expected, in_place] = by_queue(&bridge, &plan, direction, &input);
            let mut data = device.alloc_from(&stream, &input).expect("memory");
            let mut out = device.alloc_zeroed(input.len()).expect("memory");
            let (from, to) = (data.on(&stream).expect("data"), out.on_mut(&stream).expect("out"));
            fft.enqueue(&stream, direction, from, to).expect("an FFT");
            out.copy_to_slice(&stream, &mut seen).expect("a copy");
            assert!(seen == expected, "{len} x {batch}, {way}, {direction:?}");
            data.copy_to_slice(&stream, &mut seen).expect("a copy");
            assert!(seen == input, "the input is only read: {len} x {batch}, {way}");

            let place = data.on_mut(&stream).expect("data");
            fft.enqueue_in_place(&stream, direction, place).expect("an FFT");
            data.copy_to_slice(&stream, &mut seen).expect("a copy");
            assert!(seen == in_place, "in place: {len} x {batch}, {way}, {direction:?}");
        }
    }
}

/// Numbers without a pattern: real ones, or their pairs.
trait Noise: Sample + PartialEq + std::fmt::Debug {
    fn noise(len: usize) -> Vec<Self>;
}

impl Noise for C32 {
    fn noise(len: usize) -> Vec<Self> {
        noise(len)
    }
}

impl Noise for f32 {
    fn noise(len: usize) -> Vec<Self> {
        noise(len).into_iter().map(|number| number.re).collect()
    }
}

/// That queue and stream give the same bits, and touch none of the output's gaps.
fn same_on_both<I: Noise, O: Noise>(bridge: &Bridge, direction: Direction, builder: &Builder) {
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let plan = builder.build(bridge.cl_context(), bridge.programs()).expect("a plan");
    let (input, before) = (I::noise(plan.input().extent), O::noise(plan.output().extent));
    let mut from = bridge.alloc::<I>(input.len()).expect("memory");
    let mut to = bridge.alloc::<O>(before.len()).expect("memory");
    from.upload(&input).expect("an upload");
    to.upload(&before).expect("an upload");
    {
        let (from, to) = (from.cl(&queue).expect("data"), to.cl_mut(&queue).expect("out"));
        // SAFETY: both hold the plan's numbers.
        unsafe { plan.enqueue(&queue, direction, from.arg(), to.arg()) }.expect("an FFT");
    }
    let mut expected = before.clone();
    to.download(&mut expected).expect("a download");
    assert!(expected != before, "{plan:?}");

    let fft = bridge.stream_fft(&plan).expect("it runs on streams");
    fft.prepare(direction).expect("it is prepared");
    to.upload(&before).expect("an upload");
    {
        let (from, mut to) = (from.hip(&stream).expect("data"), to.hip_mut(&stream).expect("out"));
        fft.enqueue(&stream, direction, from.slice(), to.slice_mut())
            .expect("an FFT");
    }
    let mut seen = before.clone();
    to.download(&mut seen).expect("a download");
    assert!(seen == expected, "{plan:?}, {direction:?}");
}

#[test]
fn options_do_the_same_on_a_queue_and_on_a_stream() {
    let bridge = super::bridge();
    let options = |len| {
        let window: Vec<f32> = (0..len / 2).map(|i| 1.0 + (i % 5) as f32).collect();
        Plan::builder(len)
            .batch(3)
            .input_len(len / 2)
            .window(&window)
            .scale_output(1.0 / len as f32)
            .output(Layout {
                stride: 2,
                distance: 2 * len + 1,
            })
    };
    // A smooth length, and two that are convolutions.
    for len in [96, 97, 2 * 101] {
        same_on_both::<C32, C32>(&bridge, Direction::Forward, &options(len));
        same_on_both::<C32, C32>(&bridge, Direction::Inverse, &Plan::builder(len));
        same_on_both::<f32, C32>(&bridge, Direction::Forward, &options(len).real_to_complex());
        same_on_both::<C32, f32>(&bridge, Direction::Inverse, &options(len).complex_to_real());
    }
}

#[test]
fn numbers_of_the_wrong_type_are_refused() {
    let bridge = super::bridge();
    let stream = bridge.stream().expect("a stream");
    let plan = Plan::builder(64).real_to_complex();
    let plan = plan.build(bridge.cl_context(), bridge.programs()).expect("a plan");
    let fft = bridge.stream_fft(&plan).expect("it runs on streams");
    let device = bridge.hip_device();
    let mut complex = device.alloc_zeroed::<C32>(64).expect("memory");
    let mut other = device.alloc_zeroed::<C32>(64).expect("memory");
    let (from, to) = (complex.on(&stream).expect("data"), other.on_mut(&stream).expect("out"));
    let error = fft
        .enqueue(&stream, Direction::Forward, from, to)
        .expect_err("complex numbers");
    assert!(
        error
            .to_string()
            .contains("got complex numbers, but the plan has real ones"),
        "{error}"
    );
    let place = complex.on_mut(&stream).expect("data");
    let error = fft
        .enqueue_in_place(&stream, Direction::Forward, place)
        .expect_err("in place");
    assert!(error.to_string().contains("different memory"), "{error}");
    let real = device.alloc_zeroed::<f32>(64).expect("memory");
    let (from, to) = (real.on(&stream).expect("data"), other.on_mut(&stream).expect("out"));
    let error = fft
        .enqueue(&stream, Direction::Inverse, from, to)
        .expect_err("the wrong direction");
    assert!(error.to_string().contains("forward transform"), "{error}");
}

#[test]
fn a_captured_transform_lives_as_long_as_its_graph() {
    let bridge = super::bridge();
    let stream = bridge.stream().expect("a stream");
    // In place and with scratch memory.
    let (len, batch) = (360, 4);
    let input = noise(len * batch);
    let mut data = bridge.hip_device().alloc_from(&stream, &input).expect("memory");
    let graph = {
        let (context, programs) = (bridge.cl_context(), bridge.programs());
        let plan = Plan::builder(len)
            .batch(batch)
            .way(Way::Passes)
            .build(context, programs)
            .expect("a plan");
        let fft = bridge.stream_fft(&plan).expect("it runs on streams");
        for direction in [Direction::Forward, Direction::Inverse] {
            fft.prepare(direction).expect("it is prepared");
        }
        let recorded = stream.capture_told(
            |_| Ok::<(), Error>(()),
            |stream| {
                for direction in [Direction::Forward, Direction::Inverse] {
                    fft.enqueue_in_place(stream, direction, data.on_mut(stream)?)?;
                }
                Ok(())
            },
        );
        recorded.expect("a graph").instantiate().expect("it is ready")
    };
    let mut seen = vec![C32::default(); input.len()];
    let mut scale = 1.0;
    for _ in 0..2 {
        let slice = data.on_mut(&stream).expect("data");
        // SAFETY: the graph touches this memory and its own.
        unsafe { graph.launch(&stream, &[&slice]) }.expect("a run");
        scale *= len as f32;
        data.copy_to_slice(&stream, &mut seen).expect("a copy");
        let near = |(a, b): (&C32, &C32)| (a / scale - b).norm() < 1e-5;
        assert!(seen.iter().zip(&input).all(near));
    }
}

/// All of them use the plan's one scratch memory.
#[test]
fn several_threads_and_streams_use_one_plan() {
    let bridge = super::bridge();
    let (len, batch) = (4096, 8);
    let (context, programs) = (bridge.cl_context(), bridge.programs());
    let plan = Plan::builder(len)
        .batch(batch)
        .way(Way::Passes)
        .build(context, programs)
        .expect("a plan");
    let fft = bridge.stream_fft(&plan).expect("it runs on streams");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bridge, fft, plan) = (&bridge, &fft, &plan);
            scope.spawn(move || {
                let stream = bridge.stream().expect("a stream");
                let mut input = noise(len * batch + thread);
                input.drain(..thread);
                let [_, expected] = by_queue(bridge, plan, Direction::Forward, &input);
                for _ in 0..20 {
                    let device = bridge.hip_device();
                    let mut data = device.alloc_from(&stream, &input).expect("memory");
                    let slice = data.on_mut(&stream).expect("data");
                    fft.enqueue_in_place(&stream, Direction::Forward, slice)
                        .expect("an FFT");
                    let mut seen = vec![C32::default(); input.len()];
                    data.copy_to_slice(&stream, &mut seen).expect("a copy");
                    assert!(seen == expected, "thread {thread}");
                }
            });
        }
    });
}

#[test]
fn memory_that_is_too_short_is_refused() {
    let bridge = super::bridge();
    let stream = bridge.stream().expect("a stream");
    let plan = Plan::new(bridge.cl_context(), bridge.programs(), 64, 4).expect("a plan");
    let fft = bridge.stream_fft(&plan).expect("it runs on streams");
    let mut data = bridge.hip_device().alloc_zeroed::<C32>(255).expect("memory");
    let slice = data.on_mut(&stream).expect("data");
    let error = fft
        .enqueue_in_place(&stream, Direction::Forward, slice)
        .expect_err("255 of 256");
    assert!(
        error.to_string().contains("got 255 complex numbers, it transforms 256"),
        "{error}"
    );
}
