//! clmgr's FFT on HIP's streams.

use clmgr::C32;
use clmgr_fft::{Direction, Plan, Way};
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
