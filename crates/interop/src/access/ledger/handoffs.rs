use std::collections::VecDeque;
use std::sync::Arc;

use crate::access::Outcome;
use crate::{Error, Result};

/// The hand-offs between the users of one view: which are on their way, which failed, and who still has to learn that.
///
/// A failure makes the recorded order unknown the moment that it is found, no matter who looks, and until the host has waited
/// for every user. It belongs to the bytes: the next user of this view gets its error, and the next user of each other
/// view of them learns of it too ([`Views`](crate::access::alias::Views)).
#[derive(Default)]
pub(super) struct Handoffs {
    /// Those whose outcome was unknown when last checked, oldest first.
    on_their_way: VecDeque<Arc<Outcome>>,
    /// [`Outcome::failures`] when none of these had failed.
    failures: u64,
    /// Those that failed, which the view's own users still have to learn of.
    failed: VecDeque<Arc<Outcome>>,
    /// Why those failed that the other views have not been told of.
    news: Vec<String>,
    is_disordered: bool,
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
        match std::iter::from_fn(|| self.failed.pop_front()).find_map(|outcome| outcome.take_error()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// For the other views of the bytes: why hand-offs failed, each told once.
    pub(super) fn take_news(&mut self) -> Vec<String> {
        self.learn();
        std::mem::take(&mut self.news)
    }

    /// Whether one may fail that has not yet.
    pub(super) fn may_fail(&self) -> bool {
        self.on_their_way.iter().any(|outcome| !outcome.is_done())
    }

    /// Those that failed or may still fail.
    pub(super) fn unsettled(&self) -> Vec<Arc<Outcome>> {
        self.failed.iter().chain(&self.on_their_way).cloned().collect()
    }

    /// The errors that no user has been told. What is on its way may still fail, and stays.
    pub(super) fn take_errors(&mut self) -> Vec<Error> {
        self.learn();
        let failed = std::mem::take(&mut self.failed);
        failed.iter().filter_map(|outcome| outcome.take_error()).collect()
    }

    /// Finds those that have failed by now, whether older ones are still on their way or not.
    fn learn(&mut self) {
        // Before the search: what fails during it is found by the next one.
        let failures = Outcome::failures();
        if failures != self.failures {
            self.failures = failures;
            let (failed, left): (VecDeque<_>, _) = std::mem::take(&mut self.on_their_way)
                .into_iter()
                .partition(|outcome| outcome.has_failed());
            self.on_their_way = left;
            self.is_disordered |= !failed.is_empty();
            self.news.extend(failed.iter().filter_map(|outcome| outcome.failure()));
            self.failed.extend(failed);
        }
        while self.on_their_way.pop_front_if(|outcome| outcome.is_done()).is_some() {}
    }
}
