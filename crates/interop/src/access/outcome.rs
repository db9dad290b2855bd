use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::values::deadline;
use crate::{Error, Result};

/// How many hand-offs of the process have failed.
static FAILURES: AtomicU64 = AtomicU64::new(0);

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
    pub(crate) fn settle(&self, result: Result<()>) -> bool {
        let mut state = self.state.lock();
        if !matches!(*state, State::Pending) {
            return false;
        }
        *state = match result {
            Ok(()) => State::Done,
            Err(error) => {
                FAILURES.fetch_add(1, Ordering::Release);
                State::Failed(Some(error))
            }
        };
        self.known.notify_all();
        true
    }

    /// Replaces what was known: the waiting side could not be let go.
    pub(crate) fn spoil(&self, error: Error) {
        let mut state = self.state.lock();
        FAILURES.fetch_add(1, Ordering::Release);
        *state = State::Failed(Some(error));
    }

    /// Grows with each hand-off of the process that fails.
    pub(crate) fn failures() -> u64 {
        FAILURES.load(Ordering::Acquire)
    }

    /// Whether it went well.
    pub(crate) fn is_done(&self) -> bool {
        matches!(*self.state.lock(), State::Done)
    }

    /// Whether it failed, and the failure was reported or not.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(*self.state.lock(), State::Failed(_))
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

    pub(crate) fn wait(&self) {
        let mut state = self.state.lock();
        while matches!(*state, State::Pending) {
            self.known.wait(&mut state);
        }
    }

    /// Its error, or `late` if it was not known in time.
    pub(crate) fn wait_for(&self, limit: Duration, late: impl FnOnce() -> Error) -> Result<()> {
        let deadline = deadline::after(limit);
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                State::Done => return Ok(()),
                State::Failed(error) => return error.take().map_or(Ok(()), Err),
                State::Pending => {}
            }
            if self.known.wait_until(&mut state, deadline).timed_out() {
                return Err(late());
            }
        }
    }
}
