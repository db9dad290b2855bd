use std::collections::BTreeSet;
use std::sync::Arc;
#[cfg(feature = "vulkan")]
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::Mutex;

use super::device::Word;
use super::{Outcome, Parties};
use crate::Result;

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
pub(crate) trait LetGo: Send + Sync {
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
pub(crate) struct Ticket {
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

    /// Of a queue or stream that waits for a signal.
    #[cfg(feature = "vulkan")]
    pub(crate) fn of_signal(parties: Parties, signal: Weak<dyn LetGo>) -> Arc<Self> {
        Self::new(parties, Hold::Signal(signal))
    }

    pub(super) fn parties(&self) -> &Parties {
        &self.parties
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    pub(crate) fn outcome(&self) -> &Arc<Outcome> {
        &self.outcome
    }

    /// Records how the work before went and releases the other side, whichever it is. Fit for a
    /// driver's thread; `true` if the watchdog has to [rescue](Self::rescue) what waits.
    pub(super) fn resolve(&self, result: Result<()>) -> bool {
        let well = result.is_ok();
        if let Hold::Event(event, _) = &self.hold {
            // Not under the lock: what waits for the event may run inside of the call that ends it.
            let event = event.lock().take();
            if let Some(event) = event {
                self.end(event, result);
            }
            return false;
        }
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
            Hold::Function | Hold::Event(..) => {}
            #[cfg(feature = "vulkan")]
            Hold::Signal(_) => self.needs_rescue.store(!well, Ordering::Release),
        }
        self.needs_rescue.load(Ordering::Acquire)
    }

    /// Ends the event that a queue waits for. A failure is known before the queue goes on; success, not before the queue
    /// was let go, for a ledger forgets a hand-off that went well.
    fn end(&self, event: clmgr::UserEvent, result: Result<()>) {
        let failed = |error: clmgr::Error| self.parties.failed(error);
        if result.is_ok() {
            self.outcome.settle(event.complete().map_err(failed));
            return;
        }
        self.outcome.settle(result);
        if let Err(error) = event.fail() {
            self.outcome.spoil(failed(error));
        }
    }

    /// Releases the side without an error: the order failed before it was complete, and its caller got the error.
    pub(crate) fn withdraw(&self) {
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

    /// Whether something may still wait for it.
    pub(super) fn is_pending(&self) -> bool {
        !self.outcome.is_known() || self.needs_rescue.load(Ordering::Acquire)
    }

    /// Whether nothing waits for it and the caller alone holds the ticket.
    pub(super) fn is_retired(self: &Arc<Self>) -> bool {
        let retired = Arc::strong_count(self) == 1 && !self.is_pending();
        // What the callback did came before it let go.
        fence(Ordering::Acquire);
        retired
    }
}
