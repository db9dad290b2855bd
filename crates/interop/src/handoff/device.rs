//! [`Grade::Device`]: a kernel writes a number into memory that both APIs see, and a stream waits
//! for it.
//!
//! On ROCm the wait is a kernel that spins (rocclr/utils/flags.hpp, `GPU_STREAMOPS_CP_WAIT`), and OpenCL does not
//! guarantee when a word that a kernel wrote becomes visible elsewhere. Hence only on request, and with a time limit.
//! OpenCL's queues on ROCm do not order kernels that share no memory (rocclr/device/rocm/rocvirtual.cpp,
//! `dispatchPacketHeaderNoSync_`), so the kernel that writes the word also takes the handed-over memory, which it
//! leaves alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::callback::{Callback, Gate};
use super::exit::begin;
use super::ticket::{Hold, Ticket};
use super::{Handoff, Ordered, Outcome, Parties, Side};
use crate::access::User;
use crate::backing::{self, Backing};
use crate::core::Core;
use crate::values::Mechanisms;
use crate::{Error, Grade, Result, Route};

/// A number that a queue's kernels write and streams wait for.
pub(super) struct Word {
    memory: Box<dyn Backing>,
    address: usize,
    /// As [`Device::rescue`].
    rescue: hip::Stream,
    /// `None` once it was given up.
    under_way: Mutex<Option<UnderWay>>,
}

/// Hand-offs that a word is to signal, with those that ended since the last look.
struct UnderWay {
    outcomes: Vec<(Parties, Arc<Outcome>)>,
    sweep: clmgr::Sweep,
}

/// This many hand-offs are kept whether they have ended or not.
const FEW: usize = 16;

impl Word {
    pub(super) fn new(core: &Core, rescue: &hip::Stream) -> Result<Self> {
        // A cache line, so that no two words share one.
        let mut memory = backing::allocate(core, Route::SvmCoarse, 64)?;
        memory.write(core, 0, &[0; 64])?;
        core.queue.finish()?;
        Ok(Self {
            address: memory.hip_ptr().expose_provenance(),
            memory,
            rescue: rescue.clone(),
            under_way: Mutex::new(Some(UnderWay {
                outcomes: Vec::new(),
                sweep: clmgr::Sweep::every(FEW),
            })),
        })
    }

    fn ptr(&self) -> *mut u64 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Whether streams were released before the kernels of their hand-offs had ended.
    pub(super) fn is_given_up(&self) -> bool {
        self.under_way.lock().is_none()
    }

    /// From now on the hand-off fails if the word is given up. `false` if it was already: no stream
    /// may wait for it then.
    pub(super) fn enrol(&self, ticket: &Ticket) -> bool {
        let mut under_way = self.under_way.lock();
        let Some(UnderWay { outcomes, sweep }) = &mut *under_way else {
            return false;
        };
        if sweep.is_due(outcomes.len()) {
            outcomes.retain(|(_, outcome)| !outcome.is_known());
            sweep.done(outcomes.len(), outcomes.len());
        }
        outcomes.push((*ticket.parties(), Arc::clone(ticket.outcome())));
        true
    }

    /// The stream goes on when the word has reached the number, or was given up.
    ///
    /// # Safety
    /// The word lives until the stream has gone on.
    pub(super) unsafe fn hold(&self, stream: &hip::Stream, number: u64) -> Result<()> {
        // SAFETY: an aligned word that kernels write whole; the caller keeps it.
        unsafe { stream.wait_word(self.ptr(), hip::Condition::AtLeast(number)) }?;
        Ok(())
    }

    /// Releases every stream that waits for the word. Their hand-offs, whatever memory they are about,
    /// are known to have failed before.
    ///
    /// A kernel that writes it after all takes it back to its own number, so that a stream that did
    /// not look meanwhile waits on. Hence this is called again when the kernel has ended.
    pub(super) fn give_up(&self) -> Result<()> {
        let mut under_way = self.under_way.lock();
        for (parties, outcome) in under_way.take().into_iter().flat_map(|it| it.outcomes) {
            outcome.told(Err(parties.failed(Error::Ungated)));
        }
        drop(under_way);
        // SAFETY: an aligned word that lives as long as `self`, whose other users are kernels and
        // streams that access it whole; the wait below ends the use.
        unsafe { self.rescue.write_word(self.ptr(), u64::MAX) }?;
        Ok(self.rescue.synchronize()?)
    }
}

pub(crate) struct Device {
    core: Arc<Core>,
    kernels: Kernels,
    /// For the other direction, and its watchdog for both.
    callback: Callback,
    lanes: Mutex<Lanes>,
    /// Used only by [`Word::give_up`], so that it never queues behind other work.
    rescue: hip::Stream,
}

/// No lane is freed before the grade itself: a stream may still have a wait queued for its word.
#[derive(Default)]
struct Lanes {
    by_queue: HashMap<usize, Arc<Lane>>,
    given_up: Vec<Arc<Lane>>,
}

/// One object for each kind of argument: some drivers fix the kind at the first launch.
struct Kernels {
    over_svm: clmgr::Kernel,
    over_mem: clmgr::Kernel,
}

struct Lane {
    word: Arc<Word>,
    last: Mutex<u64>,
}

fn no_grade(reason: impl Into<String>) -> Error {
    Error::NoGrade {
        grade: Grade::Device,
        reason: reason.into(),
    }
}

impl Device {
    /// `program` has the kernel that signals.
    pub(crate) fn start(core: &Arc<Core>, program: &clmgr::Program, limit: Duration) -> Result<Self> {
        if Gate::of(&core.hip_device) != Gate::Word {
            return Err(no_grade(format!(
                "the HIP device cannot wait for a word (hipDeviceAttributeCanUseStreamWaitValue \
                 is 0 or hipStreamWaitValue64 is missing), and {}",
                super::semaphore::why_not(core)
            )));
        }
        Ok(Self {
            core: Arc::clone(core),
            kernels: Kernels {
                over_svm: program.kernel("probe_signal")?,
                over_mem: program.kernel("probe_signal")?,
            },
            callback: Callback::start(core, Gate::Word, limit)?,
            lanes: Mutex::default(),
            rescue: core.hip_device.stream()?,
        })
    }

    fn cl_to_hip(
        &self,
        (queue, stream): (&clmgr::Queue, &hip::Stream),
        parties: Parties,
        subject: clmgr::Arg<'_>,
    ) -> Result<Arc<Outcome>> {
        let _under_way = begin()?;
        let (lane, ticket) = self.enrol(queue, parties)?;
        // Held until the kernel is in the queue, so that numbers and kernels are in one order.
        let mut last = lane.last.lock();
        let number = *last + 1;
        let kernel = match subject {
            clmgr::Arg::Mem(_) => &self.kernels.over_mem,
            _ => &self.kernels.over_svm,
        };
        let args = [lane.word.memory.cl_arg(), clmgr::Arg::scalar(&number), subject];
        // SAFETY: probe_signal takes a word, a ulong and a buffer; it writes the word, which lives
        // as long as `self`, and nothing else. Kernels of one queue write it one after the other.
        let launched = unsafe { kernel.launch(queue, clmgr::NdRange::d1(1), &args) };
        let event = launched.inspect_err(|_| ticket.withdraw())?;
        *last = number;
        drop(last);
        self.callback.watchdog().watch(&ticket);
        // The stream comes after the kernel, so that nothing waits for what was never queued.
        let told = event.on_complete({
            let resolve = self.callback.watchdog().resolver(&ticket);
            move |end| resolve(end.map_err(|error| parties.failed(error)))
        });
        if let Err(error) = told {
            ticket.withdraw();
            return Err(error.into());
        }
        // SAFETY: it lives until every stream of the shared buffers was waited for, since they keep the
        // grade.
        let held = unsafe { lane.word.hold(stream, number) };
        held.inspect_err(|_| ticket.withdraw())?;
        Ok(Arc::clone(ticket.outcome()))
    }

    /// A ticket that the queue's word is to signal.
    fn enrol(&self, queue: &clmgr::Queue, parties: Parties) -> Result<(Arc<Lane>, Arc<Ticket>)> {
        loop {
            let lane = self.lane(queue)?;
            let ticket = Ticket::new(parties, Hold::Word(Arc::clone(&lane.word)));
            // Else it was given up just now, and the queue gets another one.
            if lane.word.enrol(&ticket) {
                return Ok((lane, ticket));
            }
        }
    }

    fn lane(&self, queue: &clmgr::Queue) -> Result<Arc<Lane>> {
        let mut lanes = self.lanes.lock();
        let key = queue.raw().addr();
        if let Some(lane) = lanes.by_queue.get(&key)
            && !lane.word.is_given_up()
        {
            return Ok(Arc::clone(lane));
        }
        let lane = Arc::new(Lane {
            word: Arc::new(Word::new(&self.core, &self.rescue)?),
            last: Mutex::new(0),
        });
        let old = lanes.by_queue.insert(key, Arc::clone(&lane));
        lanes.given_up.extend(old);
        Ok(lane)
    }
}

impl Handoff for Device {
    fn grade(&self) -> Grade {
        Grade::Device
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: "a kernel's word and hipStreamWaitValue64",
            ..self.callback.mechanisms()
        }
    }

    fn limit(&self) -> Option<Duration> {
        self.callback.limit()
    }

    fn order(&self, before: &User, after: &User, subject: clmgr::Arg<'_>) -> Result<Ordered> {
        let parties = Parties {
            grade: Grade::Device,
            before: Side::of(before),
            after: Side::of(after),
        };
        match (before, after) {
            (User::Cl(queue), User::Hip(stream)) => {
                let outcome = self.cl_to_hip((queue, stream), parties, subject)?;
                Ok(Ordered::Queued(Some(outcome)))
            }
            (User::Hip(stream), User::Cl(queue)) => {
                let outcome = self.callback.hip_to_cl(parties, stream, queue)?;
                Ok(Ordered::Queued(Some(outcome)))
            }
            _ => self.callback.order(before, after, subject),
        }
    }
}

#[cfg(test)]
impl Device {
    /// The word that signals the queue's next hand-off.
    pub(super) fn word(&self, queue: &clmgr::Queue) -> Arc<Word> {
        Arc::clone(&self.lane(queue).expect("a lane").word)
    }

    /// The number of hand-offs that this word signals.
    pub(super) fn hand_offs(&self, queue: &clmgr::Queue) -> u64 {
        *self.lane(queue).expect("a lane").last.lock()
    }
}
