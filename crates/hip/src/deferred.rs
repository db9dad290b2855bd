use parking_lot::Mutex;

use crate::{Error, report};

/// Errors that a destructor found and could not return.
#[derive(Default)]
pub(crate) struct Deferred {
    kept: Mutex<Vec<Error>>,
}

impl Deferred {
    /// A program that never takes them must not grow without end; the log has them all.
    const MOST: usize = 64;

    pub(crate) fn push(&self, error: Error) {
        report::while_dropping(&error);
        let mut kept = self.kept.lock();
        if kept.len() < Self::MOST {
            kept.push(error);
        }
    }

    pub(crate) fn take(&self) -> Vec<Error> {
        std::mem::take(&mut *self.kept.lock())
    }
}
