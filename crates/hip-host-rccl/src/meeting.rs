//! Where the ranks of a communicator meet: in this process, or in the one that made the id.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::operation::Operation;
use crate::place::Place;
use crate::status::{Failure, Outcome};

/// What a rank asks of the place where the ranks meet.
pub(crate) trait Meeting: Send + Sync {
    fn ranks(&self) -> usize;

    /// The communicator's failure, if there is one.
    fn failure(&self) -> Option<Arc<Failure>>;

    fn check(&self) -> Outcome {
        match self.failure() {
            Some(failure) => Err((*failure).clone()),
            None => Ok(()),
        }
    }

    /// Waits until every rank is there.
    fn wait_complete(&self) -> Outcome;

    /// The place of a call that `rank` issues now. [`leave`](Self::leave) has to follow.
    fn issue(&self, rank: usize, operation: &Operation) -> Outcome<Place>;

    /// A call of `rank` has ended, or will never run.
    fn leave(&self, rank: usize);

    /// The stream of `rank` gets to its call, whose memory is there until the returned wait has ended.
    fn arrive(&self, rank: usize, place: Place, operation: Operation) -> Wait<'_>;

    /// The rank's wish for its split of this number. The returned wait ends when all ranks have told theirs.
    fn split(self: Arc<Self>, rank: usize, number: u64, wish: Wish) -> Parting;

    /// Waits for the calls of `rank`, and takes it out.
    fn destroy(&self, rank: usize);

    /// Ends everything that waits, for all ranks.
    fn abort(&self, rank: usize);

    /// A failure of the communicator that began elsewhere.
    fn fail_with(&self, failure: Failure);
}

/// Waits until the operation is done; at the time limit the communicator fails. An abort is no error.
pub(crate) type Wait<'m> = Box<dyn FnOnce() -> Result<(), Arc<Failure>> + 'm>;

/// Where a rank wants to go in a split.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Wish {
    /// `None` for nowhere.
    pub(crate) color: Option<i32>,
    pub(crate) key: i32,
}

/// Waits for the other ranks' wishes: where this rank meets those of its color, and its number there.
pub(crate) type Parting = Box<dyn FnOnce() -> Outcome<Option<(Arc<dyn Meeting>, usize)>> + Send>;
