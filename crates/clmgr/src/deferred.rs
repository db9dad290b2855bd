//! Errors that a destructor encountered and could not return.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Error;

/// The errors of one holder of a queue, kept until taken. When the holder goes, its errors pass
/// to the heir: from a lease to its pool, from a queue or a pool to its context.
#[derive(Default)]
pub(crate) struct Deferred {
    state: Mutex<State>,
    heir: Option<Arc<Deferred>>,
}

#[derive(Default)]
struct State {
    kept: Vec<Error>,
    /// Errors that came after there were [`MOST`](Deferred::MOST).
    more: usize,
    /// The holder is gone, so the heir receives any later errors.
    is_left: bool,
}

impl State {
    fn take(&mut self) -> Vec<Error> {
        let mut kept = std::mem::take(&mut self.kept);
        match std::mem::take(&mut self.more) {
            0 => {}
            count => kept.push(Error::MoreDeferred { count }),
        }
        kept
    }
}

impl Deferred {
    /// A program that never takes them must not grow without bound.
    const MOST: usize = 64;

    pub fn with_heir(heir: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            heir: Some(heir.clone()),
        })
    }

    pub fn push(&self, error: Error) {
        let mut state = self.state.lock();
        match &self.heir {
            Some(heir) if state.is_left => heir.push(error),
            _ if state.kept.len() < Self::MOST => state.kept.push(error),
            _ => state.more += 1,
        }
    }

    /// The errors so far, oldest first. The last may say how many more there were.
    pub fn take(&self) -> Vec<Error> {
        self.state.lock().take()
    }

    /// Passes the kept errors, and any later ones, to the heir.
    pub fn leave(&self) {
        let Some(heir) = &self.heir else { return };
        let left = {
            let mut state = self.state.lock();
            state.is_left = true;
            state.take()
        };
        for error in left {
            heir.push(error);
        }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(what: &'static str) -> Error {
        Error::Zero { what }
    }

    fn texts(deferred: &Deferred) -> Vec<String> {
        deferred.take().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_error_is_kept_in_order_up_to_a_bound() {
        let deferred = Deferred::default();
        deferred.push(error("a"));
        deferred.push(error("b"));
        assert_eq!(texts(&deferred), ["a must not be zero", "b must not be zero"]);
        assert!(texts(&deferred).is_empty());
        (0..1000).for_each(|_| deferred.push(error("c")));
        let taken = deferred.take();
        assert_eq!(taken.len(), Deferred::MOST + 1);
        assert!(matches!(taken.last(), Some(Error::MoreDeferred { count: 936 })));
        assert!(deferred.take().is_empty());
    }

    #[test]
    fn what_a_holder_leaves_and_what_comes_later_goes_to_its_heir() {
        let heir = Arc::new(Deferred::default());
        let holder = Deferred::with_heir(&heir);
        holder.push(error("a"));
        assert!(texts(&heir).is_empty());
        holder.leave();
        holder.push(error("b"));
        assert!(texts(&holder).is_empty());
        assert_eq!(texts(&heir), ["a must not be zero", "b must not be zero"]);
        let holder = Deferred::with_heir(&heir);
        holder.push(error("c"));
        drop(holder);
        assert_eq!(texts(&heir), ["c must not be zero"]);
    }
}
