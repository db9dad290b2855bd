//! Blocks of data passing through stages that run concurrently.
//!
//! ```text
//!  producer -> upload -> stage -> ... -> stage -> download -> consumer
//!     ^          |         |               |         |        (calling thread)
//!     |        one thread each: block 3, 2,      1           0
//!     +---- a slot comes free <----------------------+
//! ```
//!
//! A slot is what one block needs on its way: buffers, a queue, a stream. There are at most as many blocks in flight as
//! slots, and the producer is not called for another until a slot is free.

mod error;
mod slot;
mod timeline;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

pub use error::{Cause, StageError};
pub use slot::Slot;
pub use timeline::{Span, StageTime, Summary};
use worker::{InFlight, Worker};

use crate::{Error, Result};

/// What happens to later blocks once one has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// They are processed as usual.
    #[default]
    Continue,
    /// The producer is not called again. Blocks already in flight are finished.
    Stop,
}

type Work<'a, S, E> = Box<dyn FnMut(&mut S, u64) -> Result<(), E> + Send + 'a>;

/// How a stage takes its blocks.
enum Stage<'a, S, E> {
    /// One after the other.
    Single(Work<'a, S, E>),
    /// Those that wait, up to `most`: work is queued for all of them before any is waited for.
    Batched {
        most: usize,
        queue: Work<'a, S, E>,
        wait: Work<'a, S, E>,
    },
}

impl<S, E> Stage<'_, S, E> {
    fn run(
        &mut self,
        worker: &mut Worker<'_>,
        work: &mpsc::Receiver<InFlight<S, E>>,
        next: &mpsc::Sender<InFlight<S, E>>,
    ) {
        let mut batch = Vec::new();
        while let Ok(first) = work.recv() {
            batch.push(first);
            match self {
                Self::Single(stage) => {
                    for in_flight in &mut batch {
                        let InFlight { slot, block, failure } = in_flight;
                        if failure.is_none() {
                            *failure = worker.work(*block, || stage(slot, *block)).err();
                        }
                    }
                }
                Self::Batched { most, queue, wait } => {
                    batch.extend(work.try_iter().take(most.saturating_sub(1)));
                    worker.batch(&mut batch, queue, wait);
                }
            }
            for in_flight in batch.drain(..) {
                if next.send(in_flight).is_err() {
                    return;
                }
            }
        }
    }
}

/// Stages that work on different blocks at the same time, each on its own thread.
///
/// Blocks enter and leave every stage in the producer's order. A stage that fails, or panics, fails its block: the
/// later stages are skipped for that block, and the consumer receives its number, the stage and the cause. The consumer
/// receives every block of the producer, one way or the other.
///
/// A stage should wait for its device before it returns, so its time and its errors are its own. If it does not, the
/// next stage's guard still orders that stage's work after it.
///
/// ```
/// # use interop::{Bridge, Options, Pipeline, Slot};
/// # let bridge = Bridge::open(&platform::select()?, &Options::default())?;
/// # let add = bridge.programs().get(
/// #     "__kernel void add(__global float *x) { x[get_global_id(0)] += 1.0f; }", "")?.kernel("add")?;
/// let mut pipeline = Pipeline::new(bridge.slots::<f32>(2, 256)?)
///     .stage("add", |slot: &mut Slot<f32>, _block| {
///         let guard = slot.data.cl_mut(&slot.queue)?;
///         // SAFETY: `add` takes one buffer and touches 256 floats.
///         unsafe { add.launch(&slot.queue, clmgr::NdRange::d1(256), &[guard.arg()]) }?;
///         Ok::<_, interop::Error>(slot.queue.finish()?)
///     });
/// let mut blocks = (0..4).map(|n| vec![n as f32; 256]);
/// let summary = pipeline.run(
///     &mut blocks,
///     |slot, block: Vec<f32>| slot.data.upload(&block),
///     |slot| {
///         let mut result = vec![0.0; 256];
///         slot.data.download(&mut result)?;
///         Ok(result)
///     },
///     |number, result| assert_eq!(result.expect("no stage fails")[0], number as f32 + 1.0),
/// )?;
/// assert_eq!(summary.blocks, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pipeline<'a, S, E> {
    slots: Vec<S>,
    stages: Vec<(String, Stage<'a, S, E>)>,
    on_error: OnError,
}

impl<'a, S: Send, E: Send> Pipeline<'a, S, E> {
    /// A pipeline without stages. Two slots are a double buffer; with as many slots as there are
    /// stages, upload and download included, all of them can be busy.
    #[must_use]
    pub fn new(slots: Vec<S>) -> Self {
        Self {
            slots,
            stages: Vec::new(),
            on_error: OnError::default(),
        }
    }

    /// Appends a stage. It receives a slot and the number of the block in it, counted from 0.
    #[must_use]
    pub fn stage(
        mut self,
        name: impl Into<String>,
        work: impl FnMut(&mut S, u64) -> Result<(), E> + Send + 'a,
    ) -> Self {
        self.stages.push((name.into(), Stage::Single(Box::new(work))));
        self
    }

    /// Adds a stage that takes the blocks waiting for it together, `most` of them (at least one):
    /// `queue` is called for each, then `wait` for each, also for one whose `queue` failed.
    ///
    /// For a device on which a change of side is expensive: a GPU that switches between two contexts does so once for
    /// the whole batch. Slots should then be about twice `most`, so each side has a batch.
    #[must_use]
    pub fn batched_stage(
        mut self,
        name: impl Into<String>,
        most: usize,
        queue: impl FnMut(&mut S, u64) -> Result<(), E> + Send + 'a,
        wait: impl FnMut(&mut S, u64) -> Result<(), E> + Send + 'a,
    ) -> Self {
        let stage = Stage::Batched {
            most,
            queue: Box::new(queue),
            wait: Box::new(wait),
        };
        self.stages.push((name.into(), stage));
        self
    }

    /// Sets what a failure means for later blocks; the default is [`OnError::Continue`].
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// The slots, as the last run left them: all of them, unless the producer or the consumer of a run
    /// panicked.
    #[must_use]
    pub fn into_slots(self) -> Vec<S> {
        self.slots
    }

    /// Runs every block of `producer` through `upload`, the stages and `download`, and passes the results to `consumer`
    /// on the calling thread, in order, with the block's number.
    ///
    /// Returns when the producer has ended and every block is out. As many results as there are slots may wait for a
    /// slow consumer; beyond them the pipeline stalls. Whatever [`OnError::Stop`] leaves in the producer stays there
    /// for its owner.
    ///
    /// # Errors
    /// [`Error::NoSlots`] if there is no slot. Errors of a block go to the consumer.
    ///
    /// # Panics
    /// If the producer or the consumer does. The blocks in flight are lost then, and so are the slots.
    pub fn run<I, O>(
        &mut self,
        producer: &mut (impl Iterator<Item = I> + Send),
        mut upload: impl FnMut(&mut S, I) -> Result<(), E> + Send,
        mut download: impl FnMut(&mut S) -> Result<O, E> + Send,
        mut consumer: impl FnMut(u64, Result<O, StageError<E>>),
    ) -> Result<Summary>
    where
        I: Send,
        O: Send,
    {
        if self.slots.is_empty() {
            return Err(Error::NoSlots);
        }
        let begin = Instant::now();
        let stop = AtomicBool::new(false);
        let failed_stops = self.on_error == OnError::Stop;
        let (free_slots, take_slot) = mpsc::channel();
        let (give_result, results) = mpsc::sync_channel(self.slots.len());
        for slot in self.slots.drain(..) {
            // The receiver is right here.
            let _ = free_slots.send(slot);
        }
        let worker = |name: &str| Worker::new(name, begin, &stop, failed_stops);
        let mut uploading = worker("upload");
        let staging: Vec<_> = self.stages.iter().map(|(name, _)| worker(name)).collect();
        let mut downloading = worker("download");

        let (times, slots, counts) = std::thread::scope(|scope| {
            // In here, so a consumer that panics lets the threads go.
            let results: mpsc::Receiver<(u64, Result<O, StageError<E>>)> = results;
            let stop = &stop;
            let (first, mut previous) = mpsc::channel::<InFlight<S, E>>();
            let mut threads = Vec::new();
            let producing = scope.spawn(move || {
                let mut block = 0;
                // A slot first: what no slot is free for is not taken from the producer.
                while let Ok(mut slot) = take_slot.recv() {
                    let item = match stop.load(Ordering::Acquire) {
                        true => None,
                        false => producer.next(),
                    };
                    let Some(item) = item else {
                        return (uploading.finish(), take_slot, Some(slot), block);
                    };
                    let failure = uploading.work(block, || upload(&mut slot, item)).err();
                    let sent = first.send(InFlight { slot, block, failure });
                    block += 1;
                    if sent.is_err() {
                        break;
                    }
                }
                (uploading.finish(), take_slot, None, block)
            });
            for ((_, stage), mut worker) in self.stages.iter_mut().zip(staging) {
                let (next, following) = mpsc::channel();
                let work = std::mem::replace(&mut previous, following);
                threads.push(scope.spawn(move || {
                    stage.run(&mut worker, &work, &next);
                    worker.finish()
                }));
            }
            threads.push(scope.spawn(move || {
                for InFlight {
                    mut slot,
                    block,
                    failure,
                } in previous
                {
                    let result = match failure {
                        Some(failure) => Err(failure),
                        None => downloading.work(block, || download(&mut slot)),
                    };
                    // Nothing takes it once the producer has ended; then it is collected below.
                    let _ = free_slots.send(slot);
                    if give_result.send((block, result)).is_err() {
                        break;
                    }
                }
                downloading.finish()
            }));
            let mut failed = 0;
            for (block, result) in results {
                failed += u64::from(result.is_err());
                consumer(block, result);
            }
            let (uploaded, take_slot, last, blocks) = join(producing);
            let mut times = vec![uploaded];
            times.extend(threads.into_iter().map(join));
            let slots: Vec<S> = last.into_iter().chain(take_slot.try_iter()).collect();
            (times, slots, (blocks, failed))
        });
        self.slots = slots;
        let (blocks, failed) = counts;
        Ok(Summary::new(blocks, failed, begin.elapsed(), times))
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl<S, E> std::fmt::Debug for Pipeline<'_, S, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.stages.iter().map(|(name, _)| name).collect();
        f.debug_struct("Pipeline")
            .field("slots", &self.slots.len())
            .field("stages", &names)
            .field("on_error", &self.on_error)
            .finish_non_exhaustive()
    }
}
