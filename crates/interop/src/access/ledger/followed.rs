use super::Worker;
use crate::Result;

/// Users that precede every user that a later user may conflict with.
///
/// Nothing has to be ordered after them any more. They are kept until their work has ended,
/// because the ordering may fail, and no longer, because a kept stream is a kept thread.
pub(super) struct Followed<W: Worker> {
    users: Vec<(W, Option<W::Mark>)>,
    /// When to check which have ended.
    pub(super) sweep: clmgr::Sweep,
}

impl<W: Worker> Followed<W> {
    pub(super) fn new(sweep: clmgr::Sweep) -> Self {
        Self {
            users: Vec::new(),
            sweep,
        }
    }

    pub(super) fn push(&mut self, user: W) {
        match self.users.iter_mut().find(|(known, _)| known.is_same(&user)) {
            // What it did since then is not marked.
            Some((_, mark)) => *mark = None,
            None => self.users.push((user, None)),
        }
    }

    pub(super) fn users(&self) -> impl Iterator<Item = &W> {
        self.users.iter().map(|(user, _)| user)
    }

    pub(super) fn last(&self) -> Option<&W> {
        self.users.last().map(|(user, _)| user)
    }

    pub(super) fn pop(&mut self) {
        self.users.pop();
    }

    /// Drops users that have ended, if there are many.
    ///
    /// # Errors
    /// If the work of one failed.
    pub(super) fn sweep(&mut self) -> Result<()> {
        if !self.sweep.is_due(self.users.len()) {
            return Ok(());
        }
        let mut outcome = Ok(());
        self.users.retain_mut(|(user, mark)| {
            // One failure is returned; the others are for later calls.
            let ended = outcome.is_ok()
                && user.has_ended(mark).unwrap_or_else(|error| {
                    *mark = None;
                    outcome = Err(error);
                    false
                });
            !ended
        });
        self.sweep.done(self.users.len(), self.users.len());
        outcome
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.users.len()
    }
}
