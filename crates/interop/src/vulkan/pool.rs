//! Semaphores, by whether they can be used again.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::access::Outcome;

/// What shows that a wait is done.
pub(super) trait IsDone {
    fn is_done(&self) -> bool;
}

/// A semaphore goes back once its wait is done *and* its hand-off is known to have gone well. Until the latter is known,
/// the watchdog may still signal the semaphore in the place of the side that is late, and so let go whatever waits for it
/// by then.
pub(super) struct Pool<S, W> {
    free: Vec<S>,
    /// Oldest first.
    lent: VecDeque<Lent<S, W>>,
    /// It is unknown whether a signal is pending.
    spoiled: Vec<S>,
}

struct Lent<S, W> {
    // Dropped before the semaphore that it is about.
    wait: W,
    outcome: Arc<Outcome>,
    semaphore: S,
}

impl<S, W: IsDone> Pool<S, W> {
    pub(super) fn with(semaphore: S) -> Self {
        Self {
            free: vec![semaphore],
            lent: VecDeque::new(),
            spoiled: Vec::new(),
        }
    }

    /// One that nothing signals or waits for.
    pub(super) fn take(&mut self) -> Option<S> {
        self.sort();
        self.free.pop()
    }

    /// It was taken for a hand-off that has been queued.
    pub(super) fn lend(&mut self, semaphore: S, wait: W, outcome: Arc<Outcome>) {
        self.lent.push_back(Lent {
            wait,
            outcome,
            semaphore,
        });
    }

    /// It was taken for a hand-off that was refused half-way.
    pub(super) fn spoil(&mut self, semaphore: S) {
        self.spoiled.push(semaphore);
    }

    /// Those that must not be destroyed: a driver may still signal or wait for them.
    pub(super) fn take_unsafe(&mut self) -> Vec<S> {
        self.sort();
        let lent = std::mem::take(&mut self.lent);
        let spoiled = std::mem::take(&mut self.spoiled);
        spoiled
            .into_iter()
            .chain(lent.into_iter().map(|it| it.semaphore))
            .collect()
    }

    fn sort(&mut self) {
        let mut place = 0;
        while let Some(lent) = self.lent.get(place) {
            if !lent.outcome.is_known() || !lent.wait.is_done() {
                place += 1;
            } else if let Some(Lent { outcome, semaphore, .. }) = self.lent.remove(place) {
                match outcome.is_done() {
                    true => self.free.push(semaphore),
                    false => self.spoiled.push(semaphore),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    impl IsDone for bool {
        fn is_done(&self) -> bool {
            *self
        }
    }

    #[test]
    fn a_semaphore_is_free_once_its_wait_is_done_and_its_hand_off_went_well() {
        let mut pool = Pool::with(0);
        let outcomes = [(); 4].map(|()| Arc::<Outcome>::default());
        assert_eq!(pool.take(), Some(0));
        for (semaphore, outcome) in outcomes.iter().enumerate() {
            pool.lend(semaphore, semaphore < 3, Arc::clone(outcome));
        }
        assert_eq!(pool.take(), None, "the watchdog may signal them yet");
        outcomes[0].told(Err(Error::Empty));
        outcomes[1].told(Ok(()));
        outcomes[3].told(Ok(()));
        assert_eq!(pool.take(), Some(1));
        assert_eq!(pool.take(), None, "one failed, one is on its way, one is waited for");
        pool.spoil(1);
        assert_eq!(pool.take(), None);
        assert_eq!(pool.take_unsafe(), [0, 1, 2, 3]);
    }
}
