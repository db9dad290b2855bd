//! Blocks through upload, an OpenCL kernel, a HIP kernel and download, by number of slots.

use hip::LaunchConfig;
use interop::{Pipeline, Slot};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::{Error, Result};

type Element = [f32; 4];

/// 16 MiB a block: larger than what a stage costs besides.
const ELEMENTS: usize = 1 << 20;
const BLOCKS: usize = 24;
const SLOTS: [usize; 4] = [1, 2, 3, 4];
const RUNS: usize = 5;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let bridge = &setup.bridge;
    let opencl = bridge
        .programs()
        .get(include_str!("../../kernels/bench.cl"), "")?
        .kernel("bench_stage")?;
    let hip = hip::rtc::Program::new(include_str!("../../kernels/bench.hip"))
        .name("bench.hip")
        .compile(bridge.hip_device())?
        .function("bench_stage")?;
    let (opencl, hip) = (&opencl, &hip);
    let mut found = Figures::default();
    for slots in SLOTS {
        let mut pipeline = Pipeline::new(bridge.slots::<Element>(slots, ELEMENTS)?)
            .stage("opencl", move |slot: &mut Slot<Element>, _| {
                let guard = slot.data.cl_mut(&slot.queue)?;
                let range = clmgr::NdRange::d1(ELEMENTS);
                // SAFETY: the kernel takes one buffer of as many elements as there are work-items.
                unsafe { opencl.launch(&slot.queue, range, &[guard.arg()]) }?;
                Ok::<_, Error>(slot.queue.finish()?)
            })
            .stage("hip", move |slot: &mut Slot<Element>, _| {
                let mut guard = slot.data.hip_mut(&slot.stream)?;
                let config = LaunchConfig::linear(ELEMENTS, 256)?;
                let count = ELEMENTS as u64;
                // SAFETY: the kernel takes a pointer and a 64-bit count and stays below the count.
                unsafe { hip.launch(&slot.stream, config, &[&guard.slice_mut(), &count]) }?;
                Ok(slot.stream.synchronize()?)
            });
        let input = vec![[1.0_f32; 4]; ELEMENTS];
        let (mut times, mut limits, mut stages) = (Vec::new(), Vec::new(), Vec::new());
        // the first run warms up
        for run in 0..=RUNS {
            let mut failure = None;
            let summary = pipeline.run(
                &mut std::iter::repeat_n(&input, BLOCKS),
                |slot, block| Ok(slot.data.upload(block)?),
                |slot| {
                    let mut output = vec![[0.0_f32; 4]; ELEMENTS];
                    Ok(slot.data.download(&mut output)?)
                },
                |_, outcome| failure = failure.take().or(outcome.err()),
            )?;
            if let Some(failure) = failure {
                return Err(Error::input(format!(
                    "the pipeline of the measurement failed: {failure}"
                )));
            }
            if run == 0 {
                continue;
            }
            let per_block = |seconds: f64| seconds * 1e3 / BLOCKS as f64;
            let slowest = summary.stages.iter().map(|stage| stage.busy).max();
            times.push(per_block(summary.elapsed.as_secs_f64()));
            limits.push(per_block(slowest.unwrap_or_default().as_secs_f64()));
            stages.push(summary.concurrency());
        }
        let limit = Line::of("", "ms", Better::Lower, limits).value;
        let concurrency = Line::of("", "", Better::Higher, stages).value;
        found.lines.push(
            Line::of(format!("{slots} slots, a block"), "ms", Better::Lower, times)
                .against(limit, "the busiest stage of the same run"),
        );
        found
            .notes
            .push(format!("{slots} slots: {concurrency:.2} of 4 stages at work at once"));
    }
    found.notes.push(format!(
        "a block is {} MiB, up and down",
        (ELEMENTS * size_of::<Element>()) >> 20
    ));
    Ok(found)
}
