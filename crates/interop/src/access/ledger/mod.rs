//! The ledger of a buffer: which users may be working on its memory, and in which order.
//!
//! It does not depend on a driver: a [`Worker`] is a queue or a stream, and an [`Order`] orders one after
//! another. The tests use numbers instead.

mod entry;
mod followed;
mod handoffs;
mod hold;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
mod user;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use clmgr::Sweep;
use entry::{Entry, covers};
use followed::Followed;
use handoffs::Handoffs;
pub(crate) use hold::Hold;
use hold::Holds;
pub(crate) use user::User;

use crate::access::Outcome;
use crate::values::Access;
use crate::{Error, Result};

/// A worker receives work and runs it in order.
pub(crate) trait Worker: Clone {
    /// Tells when the work that a worker had at some moment has ended.
    type Mark;

    fn is_same(&self, other: &Self) -> bool;

    fn shares_api(&self, other: &Self) -> bool;

    /// Whether work on one view of some bytes is ordered with its own work on another view of them.
    fn orders_any_memory(&self) -> bool;

    /// Whether it may be given more work on bytes that it was granted to read. `held` tells whether a [`Hold`] of one
    /// of the grants is alive.
    fn may_read_more(&self, held: bool) -> bool;

    /// Whether the answer depends on `held`. Counting the guards costs an allocation.
    fn counts_guards(&self) -> bool {
        true
    }

    /// Whether the work that it had at the first call with this mark has ended, and dropping the worker would
    /// not block. Does not block.
    ///
    /// # Errors
    /// If the work failed.
    fn has_ended(&self, mark: &mut Option<Self::Mark>) -> Result<bool>;
}

/// Orders workers.
pub(crate) trait Order<W> {
    /// Work given to `after` from now on starts only after the work that `before` has so far. On failure
    /// nothing is left waiting.
    fn put(&self, before: &W, after: &W) -> Result<Ordered>;

    /// Blocks until the work that `before` has so far has ended. `after` is the next user, or the calling
    /// thread.
    fn wait(&self, before: &W, after: Option<&W>) -> Result<()>;
}

/// How far an order has got when the call returns.
pub(crate) enum Ordered {
    /// The work before it has ended.
    Waited,
    /// The drivers hold the work after it. Between two APIs the outcome comes later.
    Queued(Option<Arc<Outcome>>),
}

/// What a user asks for.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'r> {
    pub(crate) access: Access,
    /// The bytes it may touch. No guard for any of them is alive, except readers' guards if this is a reader.
    pub(crate) range: &'r Range<usize>,
    /// The memory is one API's or the other's as a whole: a user comes after the other API's on
    /// every byte. What holds of `range` then holds of every byte that the other API had
    /// ([`Sides`](crate::access::sides::Sides)).
    pub(crate) is_handed_whole: bool,
}

impl Claim<'_> {
    /// The bytes of `other` that it must not be at work on.
    fn against<W: Worker>(&self, other: &Entry<W>, user: &W) -> Range<usize> {
        match self.is_handed_whole && !other.user.shares_api(user) {
            true => other.range.clone(),
            false => self.range.clone(),
        }
    }
}

/// Who may still be working on a buffer.
///
/// A use is entered when access is *granted*, not when a guard is dropped, so a guard that is leaked leaves an entry
/// that a later user waits for: it costs time, never order. Waiting for a user does not end its entry while one of its
/// guards may be alive: it may receive more work. A reader's guard counts as alive for as long as the [`Hold`] of its
/// grant, which a leaked guard keeps for ever.
///
/// An order between two drivers can fail or be given up. So being followed by another user does not remove a user: the
/// memory is freed only once the host has waited for each, and for each user that was put after another one but not
/// admitted then.
pub(crate) struct AccessLedger<W: Worker> {
    /// The users that a conflicting user must come after.
    current: VecDeque<Entry<W>>,
    /// Every user in `current` that matters to a later user comes after these, unless they were not admitted and have
    /// no work on the memory.
    behind: Followed<W>,
    /// Writers of other views, during a grant.
    relied_on: Vec<W>,
    handoffs: Handoffs,
    /// When each user's stretches are merged.
    merge: Sweep,
    /// When to check which readers have ended.
    sweep: Sweep,
}

/// So many users are kept whether they have ended or not.
const USERS: usize = 8;

/// So many stretches are kept apart.
const STRETCHES: usize = 64;

impl<W: Worker> Default for AccessLedger<W> {
    fn default() -> Self {
        Self::keeping(USERS, STRETCHES)
    }
}

impl<W: Worker> AccessLedger<W> {
    /// Keeps so many users that have ended, and so many stretches apart.
    fn keeping(users: usize, stretches: usize) -> Self {
        Self {
            current: VecDeque::new(),
            behind: Followed::new(Sweep::every(users)),
            relied_on: Vec::new(),
            handoffs: Handoffs::default(),
            merge: Sweep::every(stretches),
            sweep: Sweep::every(users),
        }
    }
}

impl<W: Worker> AccessLedger<W> {
    /// These users of other views wrote the bytes before, and were waited for: what they wrote is read now. Nothing else
    /// of this view waits for them.
    pub(crate) fn rely_on(&mut self, writers: Vec<W>) {
        self.relied_on = writers;
    }

    /// Puts `user` after every other user whose access to these bytes conflicts with its own, then
    /// enters it. The result is for the guard to keep.
    ///
    /// Two readers never conflict, nor do users of disjoint bytes (but see
    /// [`Claim::is_handed_whole`]). One queue or stream is in order, so it never waits for itself.
    ///
    /// # Errors
    /// If an order can't be had, or with the failure of an earlier hand-off. After a failure the
    /// host waits for every user before it admits another.
    pub(crate) fn admit(&mut self, order: &dyn Order<W>, user: &W, claim: Claim<'_>) -> Result<Hold> {
        let Claim { access, range, .. } = claim;
        self.check()?;
        // A user that was waited for has nothing left on these bytes: guards that could give it more work are over,
        // except readers' guards, and only a writer waits for those.
        let mut waited = match self.handoffs.is_disordered() {
            true => self.wait_for_all(order)?,
            false => Vec::new(),
        };
        self.sweep()?;
        // No user leaves the list before all are ordered, so that a failure loses none of them.
        let mut place = 0;
        let mut queued: Vec<W> = Vec::new();
        while let Some(other) = self.current.get(place) {
            let reach = claim.against(other, user);
            if !other.conflicts(user, access, &reach) {
                place += 1;
                continue;
            }
            // One ordering covers all stretches of one user.
            if !is_among(&waited, &other.user) && !is_among(&queued, &other.user) {
                let put = order.put(&other.user, user).inspect_err(|_| {
                    // It may wait for the others, and what it waits for has to outlive that.
                    if !queued.is_empty() {
                        self.behind.push(user.clone());
                    }
                });
                match put? {
                    Ordered::Waited => waited.push(other.user.clone()),
                    Ordered::Queued(outcome) => {
                        self.handoffs.push(outcome);
                        queued.push(other.user.clone());
                    }
                }
            }
            let outside = self.current[place].split(&reach);
            self.current.extend(outside.into_iter().flatten());
            let other = &mut self.current[place];
            match is_among(&waited, &other.user) {
                true => drop(self.current.remove(place)),
                false => {
                    other.followers.push(user.clone());
                    place += 1;
                }
            }
        }
        if !waited.is_empty() {
            // A hand-off that was given up meanwhile has let go the user that was waited for.
            self.check().inspect_err(|_| {
                if !queued.is_empty() {
                    self.behind.push(user.clone());
                }
            })?;
        }
        if access == Access::Write {
            // What touches these bytes after this user comes after these users too.
            let behind = &mut self.behind;
            self.current.retain(|other| {
                let stays = other.user.is_same(user) || !covers(range, &other.range);
                if !stays {
                    behind.push(other.user.clone());
                }
                stays
            });
        }
        Ok(self.enter(user, access, range))
    }

    /// Records that `user` may touch these bytes from now on.
    fn enter(&mut self, user: &W, access: Access, range: &Range<usize>) -> Hold {
        let stands_for_it =
            |known: &Entry<W>| known.access == access && known.user.is_same(user) && covers(&known.range, range);
        let mut holds = Holds::default();
        // Its smaller uses are part of the new one; but a reader's claim is not a writer's claim.
        self.current.retain_mut(|known| {
            let told = known.access == Access::Read || access == Access::Write;
            let is_part = told && known.user.is_same(user) && covers(range, &known.range);
            let stays = stands_for_it(known) || !is_part;
            if !stays {
                holds.join(std::mem::take(&mut known.holds));
            }
            stays
        });
        let place = match self.current.iter().position(stands_for_it) {
            Some(place) => place,
            None => {
                self.current.push_back(Entry::new(user.clone(), access, range.clone()));
                self.current.len() - 1
            }
        };
        let own = &mut self.current[place];
        // They follow its earlier write, not its later one.
        own.followers.clear();
        // What it does from now on is not marked.
        own.mark = None;
        own.holds.join(holds);
        let hold = match access {
            Access::Read if user.counts_guards() => own.holds.add(),
            Access::Read | Access::Write => Hold::none(),
        };
        if self.merge.is_due(self.current.len()) {
            self.coalesce();
            self.merge.done(self.current.len(), self.current.len());
        }
        hold
    }

    /// One stretch for what each user writes, and one for what it reads, spanning all its stretches. This also
    /// claims unused bytes, which costs waits but not order.
    fn coalesce(&mut self) {
        for known in std::mem::take(&mut self.current) {
            let mut merged = self.current.iter_mut();
            let alike = |other: &&mut Entry<W>| other.access == known.access && other.user.is_same(&known.user);
            match merged.find(alike) {
                Some(other) => {
                    other.range.start = other.range.start.min(known.range.start);
                    other.range.end = other.range.end.max(known.range.end);
                    other.followers.clear();
                    other.mark = None;
                    other.holds.join(known.holds);
                }
                None => self.current.push_back(known),
            }
        }
    }

    /// Waits on the host for every user that `user` must come after, without entering it: these are
    /// the users of another view of the same bytes. A hand-off that is given up meanwhile lets go the user behind it, and
    /// so ends the wait for that user while the work before it still runs: the caller looks for [news](Self::take_news)
    /// before and after.
    ///
    /// Guards of that view may be alive, so its users stay.
    ///
    /// # Errors
    /// A wait failed.
    pub(crate) fn wait_before(&mut self, order: &dyn Order<W>, user: &W, access: Access) -> Result<()> {
        if self.handoffs.is_disordered() {
            self.wait_for_all(order)?;
            return Ok(());
        }
        // The same stream is in order with its own work, but may itself be behind a hand-off that is given up later.
        let is_certain = !self.handoffs.may_fail();
        let mut waited = Vec::new();
        for other in &self.current {
            let in_order = is_certain && user.orders_any_memory() && other.user.is_same(user);
            let conflicts = access == Access::Write || other.access == Access::Write;
            if conflicts && !in_order && !is_among(&waited, &other.user) {
                order.wait(&other.user, Some(user))?;
                waited.push(other.user.clone());
            }
        }
        Ok(())
    }

    /// The first hand-off failure known so far, for a user of this view.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.handoffs.check()
    }

    /// Why hand-offs failed, for the users of other views.
    pub(crate) fn take_news(&mut self) -> Vec<String> {
        self.handoffs.take_news()
    }

    /// Drops users whose work has ended and that no user has to come after.
    fn sweep(&mut self) -> Result<()> {
        let swept = self.behind.sweep().and_then(|()| self.sweep_readers());
        swept.inspect_err(|_| self.handoffs.disorder())
    }

    /// Drops readers that receive no more work and whose work has ended: bytes that are written once may have any
    /// number of readers, and a kept stream is a kept thread.
    ///
    /// # Errors
    /// If the work of one failed.
    fn sweep_readers(&mut self) -> Result<()> {
        if !self.sweep.is_due(self.current.len()) {
            return Ok(());
        }
        let mut outcome = Ok(());
        let mut marked = 0;
        self.current.retain_mut(|known| {
            // One failure is returned; the others are for later calls.
            if known.access == Access::Write || outcome.is_err() || known.user.may_read_more(known.holds.any()) {
                return true;
            }
            let was_marked = known.mark.is_some();
            let ended = known.user.has_ended(&mut known.mark);
            let ended = ended.unwrap_or_else(|error| {
                known.mark = None;
                outcome = Err(error);
                false
            });
            marked += usize::from(!ended && !was_marked && known.mark.is_some());
            !ended
        });
        // To follow a write matters only to users with a record: another that comes is put after it again.
        let users: Vec<W> = self.current.iter().map(|known| known.user.clone()).collect();
        for known in &mut self.current {
            known.followers.retain(|follower| is_among(&users, follower));
        }
        // Those that were marked just now were not asked yet whether they have ended.
        let left = self.current.len();
        self.sweep.done(left, left - marked);
        outcome
    }

    /// Those whose writes a reader of all bytes comes after, and those that these came after, unless the host has
    /// waited for them: what is there may be made of what an earlier one wrote.
    pub(crate) fn writers(&self) -> Vec<W> {
        let writes = self.current.iter().filter(|it| it.access == Access::Write);
        writes
            .map(|known| &known.user)
            .chain(self.behind.users())
            .chain(&self.relied_on)
            .cloned()
            .collect()
    }

    /// Everyone whose work may not have ended.
    pub(crate) fn users(&self) -> Vec<W> {
        let current = self.current.iter().map(|known| &known.user);
        current.chain(self.behind.users()).cloned().collect()
    }

    /// The hand-offs that failed or may still fail.
    pub(crate) fn on_their_way(&self) -> Vec<Arc<Outcome>> {
        self.handoffs.unsettled()
    }

    /// Waits on the host for every user, each within the time limit, and returns them. Afterwards the recorded
    /// order holds for all, also where a hand-off failed. Users whose guard may be alive are kept.
    fn wait_for_all(&mut self, order: &dyn Order<W>) -> Result<Vec<W>> {
        let mut waited: Vec<W> = Vec::new();
        for known in &self.current {
            if !is_among(&waited, &known.user) {
                order.wait(&known.user, None)?;
                waited.push(known.user.clone());
            }
        }
        while let Some(user) = self.behind.last() {
            if !is_among(&waited, user) {
                order.wait(user, None)?;
            }
            self.behind.pop();
        }
        self.handoffs.restore();
        Ok(waited)
    }

    /// Waits on the host for every user, each within the time limit, and forgets them: no guard is alive. Users
    /// that were not waited for stay, and a later user of the bytes waits for all of them.
    pub(crate) fn drain(&mut self, order: &dyn Order<W>) -> Result<()> {
        self.wait_for_all(order).inspect_err(|_| self.handoffs.disorder())?;
        self.current.clear();
        Ok(())
    }

    /// Hand-off failures that have not been reported.
    pub(crate) fn take_errors(&mut self) -> Vec<Error> {
        self.handoffs.take_errors()
    }
}

fn is_among<W: Worker>(users: &[W], user: &W) -> bool {
    users.iter().any(|known| known.is_same(user))
}
