//! Blocks that arrive like a network's: through pinned memory into an OpenCL stage and a HIP stage, and only a small result out.
//!
//! First as fast as the stages take them, by number of slots. Then at four fifths of that, from a sender who does not wait: what
//! finds the receiver's ring of blocks full is lost, and counted.

use std::sync::mpsc::{self, TrySendError};
use std::time::{Duration, Instant};

use hip::LaunchConfig;
use interop::{Bridge, Pipeline, Shared};

use super::line::{Better, Line};
use super::{Found, Ground, per_second, seconds};
use crate::{Error, Result};

type Element = [f32; 4];

/// 16 MiB a block.
const ELEMENTS: usize = 1 << 20;
const BYTES: usize = ELEMENTS * size_of::<Element>();
/// Different blocks; each holds its own value.
const DIFFERENT: usize = 4;
const SLOTS: [usize; 4] = [1, 2, 4, 8];
/// Blocks that the receiver holds before one is lost.
const RING: usize = 4;
const RUNS: usize = 5;
const ON_HOST: usize = 16;
const ON_A_CARD: usize = 400;

/// What one block needs on its way.
struct Place {
    data: Shared<Element>,
    wrong: Shared<u32>,
    value: f32,
}

struct Stages {
    bridge: Bridge,
    queue: clmgr::Queue,
    stream: hip::Stream,
    work: clmgr::Kernel,
    check: hip::Function,
    blocks: Vec<hip::PinnedBuffer<Element>>,
}

/// A run's time, the blocks that came out right, and those that the sender lost.
struct Run {
    elapsed: Duration,
    right: u64,
    lost: u64,
}

pub(super) fn measure(ground: &Ground) -> Result<Found> {
    let stages = Stages::new(&ground.bridge)?;
    let on_host = ground.bridge.report().platform == platform::Platform::Host;
    let blocks = if on_host { ON_HOST } else { ON_A_CARD };
    let limit = stages.upload_limit()?;
    let mut found = Found::default();
    let (mut best, mut best_slots) = (0.0, 1);
    for slots in SLOTS {
        let mut rates = Vec::new();
        for _ in 0..RUNS {
            let run = stages.run(slots, &mut (0..blocks))?;
            rates.push(rate(&run));
        }
        let line = Line::of(
            format!("{slots} slots, sustained"),
            "GB/s",
            Better::Higher,
            rates,
        )
        .against(limit, "upload from pinned memory alone");
        if line.value > best {
            (best, best_slots) = (line.value, slots);
        }
        found.lines.push(line);
    }
    let asked = 0.8 * best;
    let (mut rates, mut sent, mut lost) = (Vec::new(), 0, 0);
    for _ in 0..RUNS {
        let run = stages.run_paced(best_slots, blocks, asked)?;
        rates.push(rate(&run));
        sent += blocks as u64;
        lost += run.lost;
    }
    found.lines.push(
        Line::of(
            format!("{best_slots} slots, from a sender who does not wait"),
            "GB/s",
            Better::Higher,
            rates,
        )
        .against(asked, "what was sent"),
    );
    found.notes.push(format!(
        "{lost} of {sent} blocks of {} MiB lost at {asked:.1} GB/s, with {RING} blocks between sender and pipeline; every block that came through was checked on the device",
        BYTES >> 20
    ));
    Ok(found)
}

fn rate(run: &Run) -> f64 {
    run.right as f64 * BYTES as f64 / run.elapsed.as_secs_f64() / 1e9
}

/// The value of a block of this number before the stages.
fn value(number: usize) -> f32 {
    (number % DIFFERENT + 1) as f32
}

impl Stages {
    fn new(bridge: &Bridge) -> Result<Self> {
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

    /// What the link takes, if nothing else is done.
    fn upload_limit(&self) -> Result<f64> {
        let mut buffer = self.bridge.alloc::<Element>(ELEMENTS)?;
        let block = self.blocks[0].host()?;
        let times = seconds(20, || Ok(buffer.upload(block)?))?;
        Ok(Line::of("", "", Better::Higher, per_second(BYTES as f64, &times)).value)
    }

    /// Blocks with these numbers, each when the pipeline takes it.
    fn run(&self, slots: usize, numbers: &mut (impl Iterator<Item = usize> + Send)) -> Result<Run> {
        let places = (0..slots)
            .map(|_| {
                Ok(Place {
                    data: self.bridge.alloc(ELEMENTS)?,
                    wrong: self.bridge.alloc(1)?,
                    value: 0.0,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let most = slots.div_ceil(2);
        let sources = self
            .blocks
            .iter()
            .map(|block| Ok(block.host()?))
            .collect::<Result<Vec<_>>>()?;
        let mut pipeline = Pipeline::new(places)
            .batched_stage(
                "opencl",
                most,
                |place: &mut Place, _| {
                    let guard = place.data.cl_mut(&self.queue)?;
                    let range = clmgr::NdRange::d1(ELEMENTS);
                    // SAFETY: the kernel takes one buffer of as many elements as there are work-items.
                    unsafe { self.work.launch(&self.queue, range, &[guard.arg()]) }?;
                    Ok::<_, Error>(())
                },
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
            |place, number| {
                place.value = value(number);
                place.wrong.upload(&[0])?;
                Ok(place.data.upload(sources[number % DIFFERENT])?)
            },
            |place| {
                let mut wrong = [1];
                place.wrong.download(&mut wrong)?;
                Ok(wrong[0])
            },
            |number, outcome| match outcome {
                Ok(0) => right += 1,
                Ok(wrong) => {
                    failure = Some(format!(
                        "{wrong} elements of block {number} came out wrong; run `hipcl doctor`"
                    ));
                }
                Err(error) => failure = Some(error.to_string()),
            },
        )?;
        match failure {
            Some(failure) => Err(Error::input(format!(
                "the measurement's own stream: {failure}"
            ))),
            None => Ok(Run {
                elapsed: begin.elapsed(),
                right,
                lost: 0,
            }),
        }
    }

    fn queue_check(&self, place: &mut Place) -> Result<()> {
        let data = place.data.hip(&self.stream)?;
        let mut wrong = place.wrong.hip_mut(&self.stream)?;
        let expected = (0..8).fold(place.value, |value, _| value * 0.999 + 0.001);
        let (low, high) = (expected * 0.9999, expected * 1.0001);
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

    /// Blocks from a sender who gives one every so often, whether or not there is room for it.
    fn run_paced(&self, slots: usize, blocks: usize, gb_s: f64) -> Result<Run> {
        let interval = Duration::from_secs_f64(BYTES as f64 / gb_s / 1e9);
        let (sender, receiver) = mpsc::sync_channel(RING);
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let (begin, mut lost) = (Instant::now(), 0);
                for number in 0..blocks {
                    let due = begin + interval * number as u32;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    match sender.try_send(number) {
                        Ok(()) => {}
                        Err(TrySendError::Full(_)) => lost += 1,
                        Err(TrySendError::Disconnected(_)) => break,
                    }
                }
                lost
            });
            let run = self.run(slots, &mut receiver.into_iter());
            // A sender whose receiver is gone ends by itself.
            let lost = sending.join().unwrap_or(0);
            Ok(Run { lost, ..run? })
        })
    }
}
