//! Blocks through an OpenCL stage and a HIP stage of one GPU, every one of them checked on the device.

use std::time::{Duration, Instant};

use hip::LaunchConfig;
use interop::{Bridge, Pipeline, Shared};

use super::line::{Better, Line};
use super::{per_second, seconds};
use crate::{Error, Result};

type Element = [f32; 4];

/// 16 MiB a block.
const ELEMENTS: usize = 1 << 20;
pub(super) const BYTES: usize = ELEMENTS * size_of::<Element>();
/// Different blocks; each holds its own value.
const DIFFERENT: usize = 4;
/// The permitted relative error of a block. A stage that was left out changes it by 0.2 % and more.
const TOLERANCE: f32 = 5e-4;
/// Kernels queued one behind the other, to time them alone.
const QUEUED: usize = 20;

/// Where the blocks are before their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// In pinned host memory: each is uploaded, and its findings are downloaded.
    Host,
    /// On the device: they stay there, and the findings are read at the end.
    Device,
}

/// What one block needs on its way.
pub(super) struct BlockBuffers {
    data: Shared<Element>,
    wrong: Shared<u32>,
    /// Of every element, after the stages it went through.
    value: f32,
}

/// A run's time, and the blocks that came out right.
pub(super) struct Run {
    pub elapsed: Duration,
    pub right: u64,
}

/// The two stages on one bridge.
pub(super) struct Stages {
    bridge: Bridge,
    queue: clmgr::Queue,
    stream: hip::Stream,
    work: clmgr::Kernel,
    check: hip::Function,
    blocks: Vec<hip::PinnedBuffer<Element>>,
}

/// The value of a block of this number before the stages. Not 1, which the OpenCL stage leaves as it is.
fn value(number: usize) -> f32 {
    (number % DIFFERENT + 2) as f32
}

/// What the OpenCL stage makes of it.
fn worked(value: f32) -> f32 {
    (0..8).fold(value, |value, _| value * 0.999 + 0.001)
}

impl Stages {
    pub(super) fn new(bridge: &Bridge) -> Result<Self> {
        let blocks = (0..DIFFERENT)
            .map(|number| {
                let mut block = bridge.hip_device().alloc_pinned::<Element>(ELEMENTS)?;
                block.host_mut()?.fill([value(number); 4]);
                Ok(block)
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            bridge: bridge.clone(),
            queue: bridge.queue()?,
            stream: bridge.stream()?,
            work: bridge
                .programs()
                .get(include_str!("../../kernels/bench.cl"), "")?
                .kernel("bench_stage")?,
            check: hip::rtc::Program::new(include_str!("../../kernels/stream.hip"))
                .name("stream.hip")
                .compile(bridge.hip_device())?
                .function("stream_check")?,
            blocks,
        })
    }

    /// GB/s of the link, if nothing else runs.
    pub(super) fn upload_limit(&self) -> Result<f64> {
        let mut buffer = self.bridge.alloc::<Element>(ELEMENTS)?;
        let block = self.blocks[0].host()?;
        let times = seconds(20, || Ok(buffer.upload(block)?))?;
        Ok(Line::of("", "", Better::Higher, per_second(BYTES as f64, &times)).value)
    }

    /// Seconds that a block's kernels take, if each API works on many of them without a change of side.
    pub(super) fn kernels_alone(&self) -> Result<f64> {
        let [place] = &mut self.places(1, Source::Device)?[..] else {
            return Ok(f64::NAN);
        };
        let opencl = seconds(20, || {
            for _ in 0..QUEUED {
                self.queue_work(place)?;
            }
            Ok(self.queue.finish()?)
        })?;
        let hip = seconds(20, || {
            for _ in 0..QUEUED {
                self.queue_check(place)?;
            }
            Ok(self.stream.synchronize()?)
        })?;
        let middle = |times| Line::of("", "", Better::Lower, times).value / QUEUED as f64;
        Ok(middle(opencl) + middle(hip))
    }

    /// Memory for as many blocks at once, filled if the blocks are there already.
    pub(super) fn places(&self, slots: usize, source: Source) -> Result<Vec<BlockBuffers>> {
        (0..slots)
            .map(|number| {
                let mut place = BlockBuffers {
                    data: self.bridge.alloc(ELEMENTS)?,
                    wrong: self.bridge.alloc(1)?,
                    value: 0.0,
                };
                if source == Source::Device {
                    self.fill(&mut place, number)?;
                }
                Ok(place)
            })
            .collect()
    }

    fn fill(&self, place: &mut BlockBuffers, number: usize) -> Result<()> {
        place.value = value(number);
        place.wrong.upload(&[0])?;
        Ok(place.data.upload(self.blocks[number % DIFFERENT].host()?)?)
    }

    /// Blocks with these numbers, each when the pipeline takes it.
    ///
    /// # Errors
    /// If a block came out wrong, or a call fails.
    pub(super) fn run(
        &self,
        places: Vec<BlockBuffers>,
        source: Source,
        numbers: &mut (impl Iterator<Item = usize> + Send),
    ) -> Result<Run> {
        let most = places.len().div_ceil(2);
        let mut pipeline = Pipeline::new(places)
            .batched_stage(
                "opencl",
                most,
                |place: &mut BlockBuffers, _| self.queue_work(place),
                |_, _| Ok(self.queue.finish()?),
            )
            .batched_stage(
                "hip",
                most,
                |place, _| self.queue_check(place),
                |_, _| Ok(self.stream.synchronize()?),
            );
        let begin = Instant::now();
        let (mut right, mut failure) = (0, None);
        pipeline.run(
            numbers,
            |place, number| match source {
                Source::Host => self.fill(place, number),
                Source::Device => Ok(()),
            },
            |place| match source {
                Source::Host => place.found(),
                Source::Device => Ok(0),
            },
            |number, outcome| match outcome {
                Ok(0) => right += 1,
                Ok(wrong) => failure = Some(came_out_wrong(wrong, &format!("block {number}"))),
                Err(error) => failure = Some(error.to_string()),
            },
        )?;
        let elapsed = begin.elapsed();
        if source == Source::Device {
            for (slot, place) in pipeline.into_slots().iter().enumerate() {
                let wrong = place.found()?;
                if wrong != 0 {
                    failure = Some(came_out_wrong(wrong, &format!("the blocks of slot {slot}")));
                }
            }
        }
        match failure {
            Some(failure) => Err(Error::input(format!("the blocks of the measurement failed: {failure}"))),
            None => Ok(Run { elapsed, right }),
        }
    }

    fn queue_work(&self, place: &mut BlockBuffers) -> Result<()> {
        let guard = place.data.cl_mut(&self.queue)?;
        let range = clmgr::NdRange::d1(ELEMENTS);
        // SAFETY: the kernel takes one buffer of as many elements as there are work-items.
        unsafe { self.work.launch(&self.queue, range, &[guard.arg()]) }?;
        place.value = worked(place.value);
        Ok(())
    }

    fn queue_check(&self, place: &mut BlockBuffers) -> Result<()> {
        let data = place.data.hip(&self.stream)?;
        let mut wrong = place.wrong.hip_mut(&self.stream)?;
        let (low, high) = (place.value * (1.0 - TOLERANCE), place.value * (1.0 + TOLERANCE));
        let config = LaunchConfig::linear(ELEMENTS, 256)?;
        let count = ELEMENTS as u64;
        // SAFETY: the kernel takes a pointer to elements, their number, below which it stays, two floats and a counter.
        unsafe {
            self.check.launch(
                &self.stream,
                config,
                &[&data.slice(), &count, &low, &high, &wrong.slice_mut()],
            )
        }?;
        Ok(())
    }
}

impl BlockBuffers {
    /// How many elements were wrong so far.
    fn found(&self) -> Result<u32> {
        let mut wrong = [u32::MAX];
        self.wrong.download(&mut wrong)?;
        Ok(wrong[0])
    }
}

fn came_out_wrong(wrong: u32, which: &str) -> String {
    format!("{wrong} elements of {which} were wrong; run `hipcl doctor`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks on the device are worked on again and again, which brings every value nearer to 1.
    #[test]
    fn a_stage_that_was_left_out_is_told_from_rounding_however_often_a_block_was_worked_on() {
        for number in 0..DIFFERENT {
            let mut now = value(number);
            for _ in 0..100 {
                let next = worked(now);
                assert!((now - next).abs() > 3.0 * TOLERANCE * now, "{now}");
                now = next;
            }
        }
    }
}
