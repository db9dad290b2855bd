use super::Parties;
use super::device::Word;
use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::Arc;
#[cfg(feature = "vulkan")]
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

/// How a hand-off went, once that is known. Plain data: a driver's thread may drop the last clone.
#[derive(Default)]
pub(crate) struct Outcome {
    state: Mutex<State>,
    known: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Pending,
    Done,
    /// `None` once the error has been reported.
    Failed(Option<Error>),
}

impl Outcome {
    /// The first answer counts; `false` for a later one.
    fn settle(&self, result: Result<()>) -> bool {
        let mut state = self.state.lock();
        if !matches!(*state, State::Pending) {
            return false;
        }
        *state = match result {
            Ok(()) => State::Done,
            Err(error) => State::Failed(Some(error)),
        };
        self.known.notify_all();
        true
    }

    /// Replaces what was known: the waiting side could not be let go.
    fn spoil(&self, error: Error) {
        *self.state.lock() = State::Failed(Some(error));
    }

    pub(crate) fn is_known(&self) -> bool {
        !matches!(*self.state.lock(), State::Pending)
    }

    /// What went wrong, as far as it is known by now; the error is still delivered.
    pub(crate) fn failure(&self) -> Option<String> {
        match &*self.state.lock() {
            State::Failed(Some(error)) => Some(error.to_string()),
            State::Failed(None) => Some("a hand-off failed, and this was told already".to_owned()),
            State::Pending | State::Done => None,
        }
    }

    /// Whether it failed and the failure was reported.
    #[cfg(test)]
    pub(crate) fn is_told(&self) -> bool {
        matches!(*self.state.lock(), State::Failed(None))
    }

    /// The error, returned once; `None` also while nothing is known.
    pub(crate) fn take_error(&self) -> Option<Error> {
        match &mut *self.state.lock() {
            State::Failed(error) => error.take(),
            State::Pending | State::Done => None,
        }
    }

    /// As a callback's end.
    pub(crate) fn told(&self, result: Result<()>) {
        self.settle(result);
    }

    pub(super) fn wait(&self) {
        let mut state = self.state.lock();
        while matches!(*state, State::Pending) {
            self.known.wait(&mut state);
        }
    }

    /// Its error, or that it was not known in time.
    pub(super) fn wait_for(&self, limit: Duration, parties: &Parties) -> Result<()> {
        let deadline = crate::values::deadline::after(limit);
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                State::Done => return Ok(()),
                State::Failed(error) => return error.take().map_or(Ok(()), Err),
                State::Pending => {}
            }
            if self.known.wait_until(&mut state, deadline).timed_out() {
                return Err(parties.late(limit));
            }
        }
    }
}

/// A word that only grows, for streams to wait for.
///
/// The greatest number up to which all have been reached: a stream that waits for one must not
/// continue because a later one was given up.
pub(super) struct Lane {
    flag: hip::Flag<u64>,
    reached: Mutex<Reached>,
}

#[derive(Default)]
struct Reached {
    /// All numbers up to this one.
    last: u64,
    /// Greater numbers.
    ahead: BTreeSet<u64>,
}

impl Lane {
    pub(super) fn new(device: &hip::Device) -> Result<Self> {
        Ok(Self {
            flag: device.flag()?,
            reached: Mutex::default(),
        })
    }

    pub(super) fn flag(&self) -> &hip::Flag<u64> {
        &self.flag
    }

    /// Callbacks of one queue may arrive out of order, and a refused hand-off reaches its number while
    /// earlier ones are still pending.
    fn reach(&self, number: u64) {
        let reached = &mut *self.reached.lock();
        reached.ahead.insert(number);
        while reached.ahead.remove(&(reached.last + 1)) {
            reached.last += 1;
            self.flag.store(reached.last);
        }
    }
}

/// What waits for a signal that another party can give in the place of the one that is to.
#[cfg(feature = "vulkan")]
pub(super) trait LetGo: Send + Sync {
    /// Gives the signal. Calls drivers.
    fn let_go(&self) -> Result<()>;
}

/// What holds the side that comes after.
pub(super) enum Hold {
    /// A stream waits until the lane has reached the number.
    Lane(Arc<Lane>, u64),
    /// A host function in the stream waits for the outcome itself.
    Function,
    /// A queue waits for the user event. The second keeps its context until the ticket is retired.
    Event(
        Mutex<Option<clmgr::UserEvent>>,
        #[allow(dead_code, reason = "kept alive")] clmgr::Event,
    ),
    /// A stream waits for a word that a kernel writes.
    Word(Arc<Word>),
    /// A queue or a stream waits for a semaphore. The grade owns it, and keeps one that is waited for.
    #[cfg(feature = "vulkan")]
    Signal(Weak<dyn LetGo>),
}

/// One hand-off on its way, shared with the driver's callback.
///
/// The [watchdog](super::watchdog) keeps it until the callback has let go of it: its parts must not
/// be released on a driver's thread.
pub(super) struct Ticket {
    parties: Parties,
    hold: Hold,
    outcome: Arc<Outcome>,
    needs_rescue: AtomicBool,
}

impl Ticket {
    pub(super) fn new(parties: Parties, hold: Hold) -> Arc<Self> {
        Arc::new(Self {
            parties,
            hold,
            outcome: Arc::default(),
            needs_rescue: AtomicBool::new(false),
        })
    }

    pub(super) fn parties(&self) -> &Parties {
        &self.parties
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    pub(super) fn outcome(&self) -> &Arc<Outcome> {
        &self.outcome
    }

    /// Records how the work before went and releases the other side, whichever it is. Fit for a
    /// driver's thread; `true` if the watchdog has to [rescue](Self::rescue) what waits.
    pub(super) fn resolve(&self, result: Result<()>) -> bool {
        let well = result.is_ok();
        let is_first = self.outcome.settle(result);
        match &self.hold {
            // The kernel has written the word, or never will. If the word was given up, it was taken back.
            Hold::Word(word) => {
                if (is_first && !well) || word.is_given_up() {
                    self.needs_rescue.store(true, Ordering::Release);
                }
            }
            _ if !is_first => return false,
            Hold::Lane(lane, number) => lane.reach(*number),
            Hold::Function => {}
            Hold::Event(event, _) => {
                // Not under the lock: what waits for the event may run inside of this call.
                let event = event.lock().take();
                let ended = event.map(|event| match well {
                    true => event.complete(),
                    false => event.fail(),
                });
                if let Some(Err(error)) = ended {
                    self.outcome.spoil(self.parties.failed(error));
                }
            }
            #[cfg(feature = "vulkan")]
            Hold::Signal(_) => self.needs_rescue.store(!well, Ordering::Release),
        }
        self.needs_rescue.load(Ordering::Acquire)
    }

    /// Releases the side without an error: the order failed before it was complete, and its caller got the error.
    pub(super) fn withdraw(&self) {
        self.resolve(Ok(()));
    }

    /// Releases a side that waits for a signal that never came. Calls drivers.
    pub(super) fn rescue(&self) {
        if !self.needs_rescue.swap(false, Ordering::AcqRel) {
            return;
        }
        let rescued = match &self.hold {
            Hold::Word(word) => word.give_up(),
            #[cfg(feature = "vulkan")]
            Hold::Signal(semaphore) => semaphore.upgrade().map_or(Ok(()), |it| it.let_go()),
            _ => Ok(()),
        };
        if let Err(error) = rescued {
            self.outcome.spoil(self.parties.failed(error));
        }
    }

    /// Whether the outcome is known and the caller alone holds the ticket.
    pub(super) fn is_retired(self: &Arc<Self>) -> bool {
        let retired = Arc::strong_count(self) == 1
            && self.outcome.is_known()
            && !self.needs_rescue.load(Ordering::Acquire);
        // What the callback did came before it let go.
        fence(Ordering::Acquire);
        retired
    }
}
