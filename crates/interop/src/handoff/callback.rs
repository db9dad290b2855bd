//! [`Grade::Callback`]: the drivers' threads hand over.
//!
//! What runs on a driver's thread stores a word, ends a user event or wakes a condition, and
//! nothing else: OpenCL may call back from inside `clSetUserEventStatus`, and HIP's callbacks must
//! not use HIP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::exit::begin;
use super::ticket::{Hold, Lane, Ticket};
use super::watchdog::Watchdog;
use super::{Handoff, Ordered, Outcome, Parties, Side};
use crate::access::User;
use crate::core::Core;
use crate::values::Mechanisms;
use crate::{Error, Grade, Result};

/// What a stream waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// `hipStreamWaitValue64` on a word of host memory. On ROCm a kernel that spins.
    Word,
    /// A host function that blocks until the other side has ended. It holds a HIP thread that other
    /// streams' callbacks may need: where OpenCL's callbacks need it too, only the watchdog
    /// ends the wait.
    Function,
}

impl Gate {
    /// The word where the device can wait for one.
    pub(crate) fn of(device: &hip::Device) -> Self {
        let can = hip_sys::hipDeviceAttribute_t::hipDeviceAttributeCanUseStreamWaitValue;
        let has_call = device.runtime().api().hipStreamWaitValue64.is_some();
        match has_call && matches!(device.attribute(can), Ok(1..)) {
            true => Self::Word,
            false => Self::Function,
        }
    }
}

pub(crate) struct Callback {
    context: clmgr::Context,
    device: hip::Device,
    gate: Gate,
    watchdog: Watchdog,
    lanes: Mutex<Lanes>,
}

/// The lanes of the live queues.
struct Lanes {
    /// Keyed by handle, which may be reused for a later queue.
    by_queue: HashMap<usize, (clmgr::WeakQueue, Arc<Numbered>)>,
    /// When to check whether their queues are gone.
    sweep: clmgr::Sweep,
}

/// This many lanes are kept whether their queues are gone or not.
const FEW: usize = 8;

struct Numbered {
    lane: Arc<Lane>,
    /// Held while a number is taken and its place in the queue is marked, so that both are in one
    /// order.
    next: Mutex<u64>,
}

impl Callback {
    pub(crate) fn start(core: &Core, gate: Gate, limit: Duration) -> Result<Self> {
        let watchdog = Watchdog::start(limit).map_err(|error| Error::NoGrade {
            grade: Grade::Callback,
            reason: format!("its watchdog's thread does not start: {error}"),
        })?;
        Ok(Self {
            context: core.context.clone(),
            device: core.hip_device.clone(),
            gate,
            watchdog,
            lanes: Mutex::new(Lanes {
                by_queue: HashMap::new(),
                sweep: clmgr::Sweep::every(FEW),
            }),
        })
    }

    pub(super) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    fn parties(before: Side, after: Side) -> Parties {
        Parties {
            grade: Grade::Callback,
            before,
            after,
        }
    }

    fn cl_to_hip(&self, queue: &clmgr::Queue, stream: &hip::Stream) -> Result<Arc<Outcome>> {
        let _under_way = begin()?;
        let parties = Self::parties(Side::of(&User::Cl(queue.clone())), Side::of(&User::of(stream)));
        let (event, hold) = match self.gate {
            Gate::Function => (queue.record()?, Hold::Function),
            Gate::Word => {
                let numbered = self.lane(queue)?;
                let mut next = numbered.next.lock();
                let event = queue.record()?;
                *next += 1;
                (event, Hold::Lane(Arc::clone(&numbered.lane), *next))
            }
        };
        let ticket = Ticket::new(parties, hold);
        self.watchdog.watch(&ticket);
        let held = match ticket.hold() {
            Hold::Lane(lane, number) => stream.wait_flag(lane.flag(), hip::Condition::AtLeast(*number)),
            _ => {
                let outcome = Arc::clone(ticket.outcome());
                stream.host_function(move || outcome.wait())
            }
        };
        if let Err(error) = held {
            ticket.withdraw();
            return Err(error.into());
        }
        let resolve = self.watchdog.resolver(&ticket);
        if let Err(error) = event.on_complete(move |end| {
            resolve(end.map_err(|error| parties.failed(error)));
        }) {
            // The stream waits already, for something that would never be signalled.
            ticket.withdraw();
            return Err(error.into());
        }
        Ok(Arc::clone(ticket.outcome()))
    }

    pub(super) fn hip_to_cl(
        &self,
        parties: Parties,
        stream: &hip::Stream,
        queue: &clmgr::Queue,
    ) -> Result<Arc<Outcome>> {
        let _under_way = begin()?;
        let user = clmgr::UserEvent::new(&self.context)?;
        let event = user.event().clone();
        let ticket = Ticket::new(parties, Hold::Event(Mutex::new(Some(user)), event.clone()));
        self.watchdog.watch(&ticket);
        let resolve = self.watchdog.resolver(&ticket);
        let told = stream.on_complete(move |end| {
            resolve(end.map_err(|error| parties.failed(error)));
        });
        if let Err(error) = told {
            ticket.withdraw();
            return Err(error.into());
        }
        queue.wait_for(&event)?;
        Ok(Arc::clone(ticket.outcome()))
    }

    fn lane(&self, queue: &clmgr::Queue) -> Result<Arc<Numbered>> {
        let lanes = &mut *self.lanes.lock();
        let key = queue.raw().addr();
        if let Some((known, lane)) = lanes.by_queue.get(&key)
            && known.upgrade().as_ref() == Some(queue)
        {
            return Ok(Arc::clone(lane));
        }
        if lanes.sweep.is_due(lanes.by_queue.len()) {
            // Streams that wait for a word keep it alive.
            lanes.by_queue.retain(|_, (queue, _)| queue.upgrade().is_some());
            let left = lanes.by_queue.len();
            lanes.sweep.done(left, left);
        }
        let lane = Arc::new(Numbered {
            lane: Arc::new(Lane::new(&self.device)?),
            next: Mutex::new(0),
        });
        let entry = (queue.downgrade(), Arc::clone(&lane));
        lanes.by_queue.insert(key, entry);
        Ok(lane)
    }

    /// The number up to which everything that the queue hands over has ended.
    #[cfg(test)]
    pub(super) fn reached(&self, queue: &clmgr::Queue) -> u64 {
        self.lane(queue).expect("a lane").lane.flag().load()
    }

    /// The number of words.
    #[cfg(test)]
    pub(super) fn lanes(&self) -> usize {
        self.lanes.lock().by_queue.len()
    }
}

impl Handoff for Callback {
    fn grade(&self) -> Grade {
        Grade::Callback
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms {
            cl_to_hip: match self.gate {
                Gate::Word => "event callback and hipStreamWaitValue64",
                Gate::Function => "event callback and a blocking hipLaunchHostFunc",
            },
            hip_to_cl: "hipStreamAddCallback and a user event",
        }
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.watchdog.limit())
    }

    fn order(&self, before: &User, after: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
        Ok(Ordered::Queued(match (before, after) {
            (User::Cl(queue), User::Hip(stream)) => Some(self.cl_to_hip(queue, stream)?),
            (User::Hip(stream), User::Cl(queue)) => {
                let parties = Self::parties(Side::of(before), Side::of(after));
                Some(self.hip_to_cl(parties, stream, queue)?)
            }
            (User::Cl(before), User::Cl(after)) => {
                after.wait_for_queue(before)?;
                None
            }
            (User::Hip(before), User::Hip(after)) => {
                after.wait_for(before)?;
                None
            }
        }))
    }
}
