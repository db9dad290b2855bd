use crate::handoff::{Handoff, Ordered, Outcome, Parties, Side, wait_within};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// A queue or stream that was given access to a buffer.
#[derive(Clone)]
pub(crate) enum User {
    Cl(clmgr::Queue),
    Hip(hip::Stream),
}

impl User {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cl(a), Self::Cl(b)) => a.raw() == b.raw(),
            (Self::Hip(a), Self::Hip(b)) => a.raw() == b.raw(),
            _ => false,
        }
    }

    /// Blocks until everything that was given to the queue or stream so far has run.
    pub(crate) fn wait(&self) -> Result<()> {
        match self {
            Self::Cl(queue) => queue.finish().map_err(Into::into),
            Self::Hip(stream) => stream.synchronize().map_err(Into::into),
        }
    }
}

/// What a user may do with the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Who may still be working on a buffer.
///
/// A use is entered when access is *granted*, not when a guard is dropped, so a guard that is
/// leaked leaves an entry that a later user waits for: it costs time, never order.
///
/// An order between two drivers can fail or be given up. So nobody is forgotten because someone was
/// ordered after them: the memory is freed only once the host has waited for each.
#[derive(Default)]
pub(crate) struct Uses {
    /// Whom a conflicting user must come after.
    current: VecDeque<Use>,
    /// Everyone in `current` that matters to a later user comes after these.
    behind: Vec<User>,
    /// Hand-offs whose outcome was not known when they were last looked at, oldest first.
    on_their_way: VecDeque<Arc<Outcome>>,
    /// A hand-off failed: nobody knows what comes after what.
    disordered: bool,
}

struct Use {
    user: User,
    access: Access,
    /// Who is ordered after this one's writes already.
    followers: Vec<User>,
}

impl Use {
    fn conflicts(&self, user: &User, access: Access) -> bool {
        if self.user.is_same(user) {
            return false;
        }
        match access {
            Access::Write => true,
            Access::Read => {
                self.access == Access::Write && !self.followers.iter().any(|f| f.is_same(user))
            }
        }
    }
}

impl Uses {
    /// Puts `user` after every other user whose access conflicts with `access`, then enters it.
    ///
    /// Two readers never conflict. One queue or stream is in order, so it never waits for itself.
    /// `subject` is the memory.
    ///
    /// # Errors
    /// If an order can't be had, or with the failure of an earlier hand-off. After a failure the
    /// host waits for everyone before anyone is let in.
    pub(crate) fn admit(
        &mut self,
        handoff: &dyn Handoff,
        subject: clmgr::Arg<'_>,
        user: &User,
        access: Access,
    ) -> Result<()> {
        self.check()?;
        if self.disordered {
            self.drain(handoff)?;
        }
        // Nobody leaves the list before everyone is in order, so that a failure forgets no one.
        let mut place = 0;
        while let Some(other) = self.current.get_mut(place) {
            if !other.conflicts(user, access) {
                place += 1;
                continue;
            }
            match handoff.order(&other.user, user, subject)? {
                Ordered::Waited => drop(self.current.remove(place)),
                Ordered::Queued(outcome) => {
                    self.on_their_way.extend(outcome);
                    other.followers.push(user.clone());
                    place += 1;
                }
            }
        }
        if access == Access::Write {
            // What comes after this user comes after them.
            let behind = &mut self.behind;
            self.current.retain(|other| {
                let own = other.user.is_same(user);
                if !own && !behind.iter().any(|known| known.is_same(&other.user)) {
                    behind.push(other.user.clone());
                }
                own
            });
        }
        match self
            .current
            .iter_mut()
            .find(|other| other.user.is_same(user))
        {
            Some(own) if access == Access::Write => {
                own.access = Access::Write;
                own.followers.clear();
            }
            Some(_) => {}
            None => self.current.push_back(Use {
                user: user.clone(),
                access,
                followers: Vec::new(),
            }),
        }
        Ok(())
    }

    /// The first failure of a hand-off that is known by now.
    pub(crate) fn check(&mut self) -> Result<()> {
        while let Some(outcome) = self.on_their_way.front()
            && outcome.is_known()
        {
            let error = outcome.take_error();
            self.on_their_way.pop_front();
            if let Some(error) = error {
                self.disordered = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits on the host for everyone, each within the time limit. Whoever was not waited for stays.
    pub(crate) fn drain(&mut self, handoff: &dyn Handoff) -> Result<()> {
        while let Some(user) = self
            .current
            .front()
            .map(|current| &current.user)
            .or(self.behind.last())
        {
            let parties = Parties {
                grade: handoff.grade(),
                before: Side::of(user),
                after: Side::Caller,
            };
            wait_within(user, handoff.limit(), &parties)?;
            if self.current.pop_front().is_none() {
                self.behind.pop();
            }
        }
        self.disordered = false;
        Ok(())
    }

    /// Failures of hand-offs that nobody was told of.
    pub(crate) fn take_errors(&mut self) -> Vec<Error> {
        let outcomes = std::mem::take(&mut self.on_their_way);
        outcomes
            .iter()
            .filter_map(|outcome| outcome.take_error())
            .collect()
    }
}
