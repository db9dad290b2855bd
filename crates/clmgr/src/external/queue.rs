//! A queue that someone else created.

use std::ops::Deref;

use crate::error::Result;
use crate::queue::Queue;

/// A foreign in-order queue, retained once for all its clones.
///
/// It is a [`Queue`] like any other: it also orders what its owner enqueues by other means.
/// [`run_after`](Self::run_after) and [`run_before`](Self::run_before) order it against other queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalQueue(Queue);

impl ExternalQueue {
    pub(super) fn new(queue: Queue) -> Self {
        Self(queue)
    }

    /// Makes every later command here, the owner's too, wait for the work enqueued on `ours` so
    /// far.
    ///
    /// # Errors
    ///
    /// As [`Queue::wait_for_queue`].
    pub fn run_after(&self, ours: &Queue) -> Result<()> {
        self.0.wait_for_queue(ours)
    }

    /// Makes every later command of `ours` wait for the work enqueued here so far, the owner's
    /// commands too.
    ///
    /// # Errors
    ///
    /// As [`Queue::wait_for_queue`].
    pub fn run_before(&self, ours: &Queue) -> Result<()> {
        ours.wait_for_queue(&self.0)
    }
}

impl Deref for ExternalQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0
    }
}
