//! Communicators that do not block: what goes on after a call has returned `ncclInProgress`.
//!
//! The real library refuses a call while the one before goes on, if it notices. Here it is refused until
//! `ncclCommGetAsyncError` has told the end, so that a program that does not ask fails always and not sometimes.

use parking_lot::Mutex;

use crate::status::{Failure, Outcome};

/// How far a communicator's last call is.
#[derive(Default)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Default)]
struct State {
    runs: bool,
    /// Its end, if it has ended, is still to be told.
    untold: bool,
    finalized: bool,
    aborted: bool,
}

impl Progress {
    /// That the next call may be made.
    pub(crate) fn check(&self) -> Outcome {
        let state = self.0.lock();
        if state.runs || state.untold {
            return Err(Failure::argument(
                "the communicator was used before ncclCommGetAsyncError told the end of its previous call",
            ));
        }
        if state.finalized {
            return Err(Failure::argument("the communicator was finalized"));
        }
        Ok(())
    }

    /// As [`check`](Self::check), for the end of the communicator. Whether it was finalized.
    pub(crate) fn check_end(&self) -> Outcome<bool> {
        let finalized = self.0.lock().finalized;
        match self.check() {
            Err(_) if finalized && !self.goes_on() => Ok(true),
            checked => checked.map(|()| false),
        }
    }

    fn goes_on(&self) -> bool {
        let state = self.0.lock();
        state.runs || state.untold
    }

    /// A call has returned whose end is to be asked for; `runs` if it goes on.
    pub(crate) fn begin(&self, runs: bool) {
        let mut state = self.0.lock();
        (state.runs, state.untold) = (runs, true);
    }

    /// The call has ended. Its results are written by `write`, unless the communicator was aborted: then the caller
    /// expects nothing any more. Whether they were.
    pub(crate) fn end(&self, write: impl FnOnce()) -> bool {
        let mut state = self.0.lock();
        state.runs = false;
        if state.aborted {
            return false;
        }
        write();
        true
    }

    /// Whether the call goes on. If not, that was told now.
    pub(crate) fn ask(&self) -> bool {
        let mut state = self.0.lock();
        state.untold &= state.runs;
        state.runs
    }

    pub(crate) fn finalize(&self) {
        self.0.lock().finalized = true;
    }

    pub(crate) fn abort(&self) {
        self.0.lock().aborted = true;
    }
}
