//! A bounded pool of queues.

#[cfg(test)]
mod model;
mod sync;
#[cfg_attr(
    test,
    allow(clippy::duplicate_mod, reason = "the model check has it over other locks")
)]
mod turns;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use turns::{Turn, Turns};

use crate::context::Context;
use crate::deferred::Deferred;
use crate::error::{Error, Result};
use crate::queue::Queue;

/// In-order queues of one context, created on demand up to a cap and leased one at a time.
///
/// A returned queue goes to the thread that has waited longest, so none starves. It may still have commands to run;
/// they stay ahead of those of the next lease. Profiling costs time with some drivers, so only
/// [`lease_profiling`](Self::lease_profiling) returns a queue with it. Such queues count like the others: at the cap,
/// an idle one of the other kind is released.
#[derive(Clone)]
pub struct CommandQueuePool(Arc<Inner>);

struct Inner {
    context: Context,
    queues: Turns<Queue>,
    /// Errors from dropped leases.
    deferred: Arc<Deferred>,
}

impl CommandQueuePool {
    /// A pool of at most `cap` queues. None is created yet.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`] if `cap` is zero.
    pub fn new(context: &Context, cap: usize) -> Result<Self> {
        if cap == 0 {
            return Err(Error::Zero {
                what: "the pool's number of queues",
            });
        }
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            queues: Turns::new(cap),
            deferred: Deferred::with_heir(context.deferred()),
        })))
    }

    /// A queue for this caller alone, until the lease is dropped. It waits while all are leased.
    ///
    /// # Errors
    ///
    /// An error from creating a queue.
    pub fn lease(&self) -> Result<QueueLease> {
        self.lease_of(false)
    }

    /// As [`lease`](Self::lease), a queue whose events record times, see [`Event::profile`](crate::Event::profile).
    ///
    /// # Errors
    ///
    /// As [`lease`](Self::lease).
    pub fn lease_profiling(&self) -> Result<QueueLease> {
        self.lease_of(true)
    }

    fn lease_of(&self, profiling: bool) -> Result<QueueLease> {
        let queues = &self.0.queues;
        let queue = match queues.next(profiling) {
            Turn::Take(queue) => queue,
            Turn::Make { instead_of } => {
                // Its commands run on: OpenCL keeps a queue until they have ended.
                drop(instead_of);
                Queue::create(&self.0.context, profiling).inspect_err(|_| queues.give_up())?
            }
        };
        Ok(QueueLease {
            queue: queue.lend(&self.0.deferred),
            pool: self.0.clone(),
        })
    }

    /// The errors from releases in a `Drop`, oldest first, that no lease returned from its
    /// [`finish`](Queue::finish).
    #[must_use]
    pub fn take_deferred_errors(&self) -> Vec<Error> {
        self.0.deferred.take()
    }

    /// The number of queues that exist; never more than the cap.
    #[must_use]
    pub fn created(&self) -> usize {
        self.0.queues.counts().all
    }
}

impl fmt::Debug for CommandQueuePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.queues.counts();
        f.debug_struct("CommandQueuePool")
            .field("cap", &counts.cap)
            .field("created", &counts.all)
            .field("idle", &counts.idle)
            .field("waiting", &counts.waiting)
            .finish()
    }
}

/// A queue lent by a pool, returned on drop.
///
/// Only this lease's [`finish`](Queue::finish) returns an error from a release in a `Drop`. If the
/// lease ends first, the [pool](CommandQueuePool::take_deferred_errors) keeps it.
pub struct QueueLease {
    queue: Queue,
    pool: Arc<Inner>,
}

impl Deref for QueueLease {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl fmt::Debug for QueueLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueLease").field(&self.queue).finish()
    }
}

impl Drop for QueueLease {
    fn drop(&mut self) {
        let queue = self.queue.leave();
        self.pool.queues.put(queue.is_profiling(), queue);
    }
}
