use std::collections::VecDeque;
use std::sync::Arc;

use crate::access::Outcome;
use crate::{Error, Result};

/// The hand-offs between the users of one view: which are on their way, which failed, and who still has to learn that.
///
/// A failure belongs to the bytes: it makes the recorded order unknown the moment that it is found, whoever looks, and
/// until the host has waited for every user. Its error is for the view's own next user; users of other views of the
/// bytes that come first learn of it as [`Error::AnotherView`].
#[derive(Default)]
pub(super) struct Handoffs {
    /// Those whose outcome was unknown when last checked, oldest first.
    on_their_way: VecDeque<Arc<Outcome>>,
    /// [`Outcome::failures`] when none of these had failed.
    failures: u64,
    /// Those that failed, which the view's own users still have to learn of.
    failed: VecDeque<Failed>,
    /// Failures of views that are no more, whose bytes this view shows too.
    inherited: VecDeque<String>,
    is_disordered: bool,
}

struct Failed {
    outcome: Arc<Outcome>,
    /// A user of another view has learnt of it.
    is_heeded: bool,
}

impl Handoffs {
    pub(super) fn push(&mut self, outcome: Option<Arc<Outcome>>) {
        self.on_their_way.extend(outcome);
    }

    /// Whether the recorded order may not be the real one.
    pub(super) fn is_disordered(&self) -> bool {
        self.is_disordered
    }

    /// The recorded order may not be the real one.
    pub(super) fn disorder(&mut self) {
        self.is_disordered = true;
    }

    /// The host has waited for every user.
    pub(super) fn restore(&mut self) {
        self.is_disordered = false;
    }

    /// For a user of this view: the first failure known by now, told once.
    pub(super) fn check(&mut self) -> Result<()> {
        self.learn();
        let errors = std::iter::from_fn(|| self.failed.pop_front());
        if let Some(error) = errors.filter_map(|failed| failed.outcome.take_error()).next() {
            return Err(error);
        }
        match self.inherited.pop_front() {
            Some(reason) => Err(Error::AnotherView { reason }),
            None => Ok(()),
        }
    }

    /// For a user of another view: the first failure known by now that no such user has learnt of.
    pub(super) fn check_from_another(&mut self) -> Result<()> {
        self.learn();
        match self.failed.iter_mut().find(|failed| !failed.is_heeded) {
            None => Ok(()),
            Some(failed) => {
                failed.is_heeded = true;
                let reason = failed.outcome.failure().unwrap_or_default();
                Err(Error::AnotherView { reason })
            }
        }
    }

    /// Another view of the bytes, which is no more, had this failure.
    pub(super) fn inherit(&mut self, reason: String) {
        self.inherited.push_back(reason);
    }

    /// Those that failed or may still fail.
    pub(super) fn unsettled(&self) -> Vec<Arc<Outcome>> {
        let failed = self.failed.iter().map(|failed| &failed.outcome);
        failed.chain(&self.on_their_way).cloned().collect()
    }

    /// The errors that no user has been told. What is on its way may still fail, and stays.
    pub(super) fn take_errors(&mut self) -> Vec<Error> {
        self.learn();
        let failed = std::mem::take(&mut self.failed);
        failed
            .into_iter()
            .filter_map(|failed| failed.outcome.take_error())
            .collect()
    }

    /// Finds those that have failed by now, whether older ones are still on their way or not.
    fn learn(&mut self) {
        // Before the search: what fails during it is found by the next one.
        let failures = Outcome::failures();
        if failures != self.failures {
            self.failures = failures;
            let (failed, left) = std::mem::take(&mut self.on_their_way)
                .into_iter()
                .partition(|outcome| outcome.has_failed());
            self.on_their_way = left;
            let failed: VecDeque<_> = failed;
            self.is_disordered |= !failed.is_empty();
            
            self.failed.extend(failed.into_iter().map(|outcome| Failed {
                outcome,
                is_heeded: false,
            }));
        }
        while self.on_their_way.pop_front_if(|outcome| outcome.is_done()).is_some() {}
    }
}
