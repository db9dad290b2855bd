//! Orders the work of one queue or stream after that of another, one file per grade. A bridge proves them when it is
//! opened; the one by semaphores is in `vulkan`.
//!
//! ```text
//!             host            callback                          device
//! CL -> HIP   clFinish        event callback -> word -> stream  kernel -> word -> stream, or a semaphore
//! HIP -> CL   synchronize     stream callback -> user event     as callback, or a semaphore
//! ```
//!
//! Whatever waits on a driver's side is released when the time limit passes ([`watchdog`]), so that a
//! side that never ends costs an error and not a hung process. It is released if the other side fails, too. Its
//! commands then run, over whatever the other side left or still does: the driver is not told of a failure, since it
//! could give up the order of a queue with it. The next access to the memory reports the failure.

mod callback;
mod device;
mod exit;
mod host;
#[cfg(any(test, feature = "vulkan"))]
mod nearby;
mod semaphore;
mod side;
#[cfg(test)]
mod tests;
mod ticket;
mod wait;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use callback::{Callback, Gate};
pub(crate) use device::Device;
#[cfg(feature = "vulkan")]
pub(crate) use exit::begin;
pub(crate) use exit::{check_answers, end_with_the_process};
pub(crate) use host::Host;
#[cfg(feature = "vulkan")]
pub(crate) use nearby::Nearby;
pub(crate) use side::{Parties, Side};
#[cfg(feature = "vulkan")]
pub(crate) use ticket::{LetGo, Ticket};
pub(crate) use wait::wait_within;
#[cfg(feature = "vulkan")]
pub(crate) use watchdog::Watchdog;

use crate::access::{Order, Ordered, Outcome, User};
use crate::values::Mechanisms;
use crate::{Grade, Result};

/// The hand-off that needs no proof: the host waits for the other side, without a limit.
pub(crate) fn by_host() -> Arc<dyn Handoff> {
    Arc::new(Host::new(None))
}

/// One grade, ready for use.
pub(crate) trait Handoff: Send + Sync {
    fn grade(&self) -> Grade;

    fn mechanisms(&self) -> Mechanisms;

    /// The longest wait for the other side; `None` waits for ever.
    fn limit(&self) -> Option<Duration>;

    /// Whether an order comes after what was enqueued just before it, whatever it is, and needs no
    /// host: memory that the drivers pass on by commands of their queues can then do so in order.
    fn follows_queues(&self) -> bool {
        false
    }

    /// Makes work enqueued on `after` from now on start only after the work on `before` so far.
    ///
    /// `subject` is the memory that it is about. On failure nothing is left waiting, but `after` may wait for more than
    /// necessary.
    fn order(&self, before: &User, after: &User, subject: clmgr::Arg<'_>) -> Result<Ordered>;
}

/// Orders the users of some memory through a hand-off.
pub(crate) struct By<'h> {
    handoff: &'h dyn Handoff,
    subject: clmgr::Arg<'h>,
}

impl<'h> By<'h> {
    /// `subject` is the memory.
    pub(crate) fn new(handoff: &'h dyn Handoff, subject: clmgr::Arg<'h>) -> Self {
        Self { handoff, subject }
    }
}

impl Order<User> for By<'_> {
    fn put(&self, before: &User, after: &User) -> Result<Ordered> {
        before.check_runs()?;
        after.check_runs()?;
        self.handoff.order(before, after, self.subject)
    }

    fn wait(&self, before: &User, after: Option<&User>) -> Result<()> {
        before.check_runs()?;
        let parties = Parties {
            grade: self.handoff.grade(),
            before: Side::of(before),
            after: after.map_or(Side::Caller, Side::of),
        };
        wait_within(before, self.handoff.limit(), &parties)
    }
}
