//! A bounded pool of queues.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::queue::Queue;

/// In-order queues of one context, created on demand up to a cap and leased one at a time.
///
/// A queue that comes back goes to the thread that has waited longest, so that nobody starves. It
/// may still have commands to run; they stay ahead of those of the next lease.
#[derive(Clone)]
pub struct CommandQueuePool(Arc<Inner>);

struct Inner {
    context: Context,
    cap: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Queue>,
    created: usize,
    waiting: VecDeque<Arc<Seat>>,
}

/// Where a waiting thread is handed what it waits for.
#[derive(Default)]
struct Seat {
    given: Mutex<Option<Grant>>,
    arrived: Condvar,
}

enum Grant {
    Queue(Queue),
    /// The right to create a queue, which another thread could not use.
    Create,
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
            cap,
            state: Mutex::default(),
        })))
    }

    /// A queue for this caller alone, until the lease is dropped. It waits while all are leased.
    ///
    /// # Errors
    ///
    /// What the creation of a queue answers.
    pub fn lease(&self) -> Result<QueueLease> {
        let seat = {
            let mut state = self.0.state.lock();
            if let Some(queue) = state.idle.pop() {
                return Ok(self.leased(queue));
            }
            if state.created < self.0.cap {
                state.created += 1;
                None
            } else {
                let seat = Arc::new(Seat::default());
                state.waiting.push_back(seat.clone());
                Some(seat)
            }
        };
        let Some(seat) = seat else {
            return self.create();
        };
        let mut given = seat.given.lock();
        loop {
            match given.take() {
                Some(Grant::Queue(queue)) => return Ok(self.leased(queue)),
                Some(Grant::Create) => {
                    drop(given);
                    return self.create();
                }
                None => seat.arrived.wait(&mut given),
            }
        }
    }

    /// The number of queues created so far; never more than the cap.
    #[must_use]
    pub fn created(&self) -> usize {
        self.0.state.lock().created
    }

    /// Creates a queue; the caller holds the right to.
    fn create(&self) -> Result<QueueLease> {
        match self.0.context.queue() {
            Ok(queue) => Ok(self.leased(queue)),
            Err(error) => {
                let mut state = self.0.state.lock();
                match state.waiting.pop_front() {
                    Some(next) => next.give(Grant::Create),
                    None => state.created -= 1,
                }
                Err(error)
            }
        }
    }

    fn leased(&self, queue: Queue) -> QueueLease {
        QueueLease {
            queue,
            pool: self.0.clone(),
        }
    }
}

impl Seat {
    fn give(&self, grant: Grant) {
        *self.given.lock() = Some(grant);
        self.arrived.notify_one();
    }
}

impl fmt::Debug for CommandQueuePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("CommandQueuePool")
            .field("cap", &self.0.cap)
            .field("created", &state.created)
            .field("idle", &state.idle.len())
            .field("waiting", &state.waiting.len())
            .finish()
    }
}

/// A queue lent by a pool, returned on drop.
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
        let queue = self.queue.clone();
        let mut state = self.pool.state.lock();
        match state.waiting.pop_front() {
            Some(next) => next.give(Grant::Queue(queue)),
            None => state.idle.push(queue),
        }
    }
}
