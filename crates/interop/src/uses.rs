use crate::handoff::{Handoff, Ordered, Outcome, Parties, Side, wait_within};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A queue or stream that was given access to memory.
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

    pub(crate) fn shares_api(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Cl(_), Self::Cl(_)) | (Self::Hip(_), Self::Hip(_))
        )
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

/// What a user asks for.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'r> {
    pub(crate) access: Access,
    /// The bytes that it may touch.
    pub(crate) range: &'r Range<usize>,
    /// The memory is one API's or the other's as a whole: a user comes after the other API's on
    /// every byte.
    pub(crate) is_handed_whole: bool,
}

impl Claim<'_> {
    /// The bytes of `other` that it must not be at work on.
    fn against(&self, other: &Use, user: &User) -> Range<usize> {
        match self.is_handed_whole && !other.user.shares_api(user) {
            true => other.range.clone(),
            false => self.range.clone(),
        }
    }
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

/// Every byte of the range stands for itself: what is known of some of them says nothing of the
/// others, whose guard may be alive and about to enqueue more.
struct Use {
    user: User,
    access: Access,
    /// The bytes it may touch.
    range: Range<usize>,
    /// Who is ordered after this one's writes already.
    followers: Vec<User>,
}

/// How many stretches are told apart. Beyond that, each user's are taken for one.
const STRETCHES: usize = 64;

impl Use {
    fn conflicts(&self, user: &User, access: Access, range: &Range<usize>) -> bool {
        if self.user.is_same(user) || !meets(&self.range, range) {
            return false;
        }
        match access {
            Access::Write => true,
            Access::Read => {
                self.access == Access::Write && !self.followers.iter().any(|f| f.is_same(user))
            }
        }
    }

    /// Keeps the bytes of `range`, and gives the others back: before it and behind it.
    fn split(&mut self, range: &Range<usize>) -> [Option<Self>; 2] {
        let Range { start, end } = self.range.clone();
        let part = |range: Range<usize>| {
            (!range.is_empty()).then(|| Self {
                user: self.user.clone(),
                access: self.access,
                range,
                followers: self.followers.clone(),
            })
        };
        let outside = [part(start..range.start), part(range.end.max(start)..end)];
        self.range = start.max(range.start)..end.min(range.end);
        outside
    }
}

fn meets(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn covers(whole: &Range<usize>, part: &Range<usize>) -> bool {
    whole.start <= part.start && part.end <= whole.end
}

impl Uses {
    /// Puts `user` after every other user whose access to these bytes conflicts with its own, then
    /// enters it.
    ///
    /// Two readers never conflict, nor do users of disjoint bytes (but see
    /// [`Claim::is_handed_whole`]). One queue or stream is in order, so it never waits for itself.
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
        claim: Claim<'_>,
    ) -> Result<()> {
        let Claim { access, range, .. } = claim;
        self.check()?;
        if self.disordered {
            self.drain(handoff)?;
        }
        // Nobody leaves the list before everyone is in order, so that a failure forgets no one.
        let mut place = 0;
        let mut queued: Vec<User> = Vec::new();
        while let Some(other) = self.current.get(place) {
            let reach = claim.against(other, user);
            if !other.conflicts(user, access, &reach) {
                place += 1;
                continue;
            }
            let ordered = match queued.iter().any(|known| known.is_same(&other.user)) {
                // By what was queued for another stretch.
                true => Ordered::Queued(None),
                false => handoff.order(&other.user, user, subject)?,
            };
            let outside = self.current[place].split(&reach);
            self.current.extend(outside.into_iter().flatten());
            match ordered {
                Ordered::Waited => drop(self.current.remove(place)),
                Ordered::Queued(outcome) => {
                    self.on_their_way.extend(outcome);
                    let other = &mut self.current[place];
                    other.followers.push(user.clone());
                    queued.push(other.user.clone());
                    place += 1;
                }
            }
        }
        if access == Access::Write {
            // What touches these bytes after this user comes after them.
            let behind = &mut self.behind;
            self.current.retain(|other| {
                let stays = other.user.is_same(user) || !covers(range, &other.range);
                if !stays && !behind.iter().any(|known| known.is_same(&other.user)) {
                    behind.push(other.user.clone());
                }
                stays
            });
        }
        self.enter(user, access, range);
        Ok(())
    }

    /// Notes that `user` may touch these bytes from now on.
    fn enter(&mut self, user: &User, access: Access, range: &Range<usize>) {
        let mut own = self.current.iter_mut().filter(|u| u.user.is_same(user));
        match own.find(|known| covers(&known.range, range)) {
            Some(known) if access == Access::Write => {
                known.access = Access::Write;
                known.followers.clear();
                return;
            }
            Some(_) => return,
            None => {}
        }
        // What it did to less is a part of what it does now.
        self.current.retain(|known| {
            let told = access == Access::Write || known.access == Access::Read;
            !(told && known.user.is_same(user) && covers(range, &known.range))
        });
        self.current.push_back(Use {
            user: user.clone(),
            access,
            range: range.clone(),
            followers: Vec::new(),
        });
        if self.current.len() > STRETCHES {
            self.coalesce();
        }
    }

    /// One stretch for each user, over all of its own: it claims bytes that nobody touches, which
    /// costs waits, and no order.
    fn coalesce(&mut self) {
        for known in std::mem::take(&mut self.current) {
            let mut merged = self.current.iter_mut();
            match merged.find(|other| other.user.is_same(&known.user)) {
                Some(other) => {
                    other.range.start = other.range.start.min(known.range.start);
                    other.range.end = other.range.end.max(known.range.end);
                    if known.access == Access::Write {
                        other.access = Access::Write;
                    }
                    other.followers.clear();
                }
                None => self.current.push_back(known),
            }
        }
    }

    /// Waits on the host for everyone whom `user` must come after, without entering it: these are
    /// the users of another view of the same bytes.
    ///
    /// OpenCL orders the commands of one queue by the objects and addresses they use, and may take
    /// two views for strangers (clr: rocclr/device/rocm/rocvirtual.cpp, the dependency tracking of
    /// dispatches), so that here a queue waits for itself; a HIP stream keeps its order whatever the
    /// memory.
    pub(crate) fn wait_before(
        &mut self,
        handoff: &dyn Handoff,
        user: &User,
        access: Access,
    ) -> Result<()> {
        self.check()?;
        if self.disordered {
            return self.drain(handoff);
        }
        for other in &self.current {
            let in_order = matches!(user, User::Hip(_)) && other.user.is_same(user);
            if !in_order && (access == Access::Write || other.access == Access::Write) {
                let parties = Parties {
                    grade: handoff.grade(),
                    before: Side::of(&other.user),
                    after: Side::of(user),
                };
                wait_within(&other.user, handoff.limit(), &parties)?;
            }
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

    /// The hand-offs whose outcome was not known when they were last looked at.
    pub(crate) fn on_their_way(&self) -> Vec<Arc<Outcome>> {
        self.on_their_way.iter().cloned().collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::Mechanisms;
    use crate::{Bridge, Grade, Options};
    use parking_lot::Mutex;
    use std::time::Duration;

    /// Notes who is put after whom, and does nothing else.
    #[derive(Default)]
    struct Noting(Mutex<Vec<(String, String)>>);

    impl Handoff for Noting {
        fn grade(&self) -> Grade {
            Grade::Callback
        }

        fn mechanisms(&self) -> Mechanisms {
            Mechanisms {
                cl_to_hip: "noted",
                hip_to_cl: "noted",
            }
        }

        fn limit(&self) -> Option<Duration> {
            None
        }

        fn order(&self, before: &User, after: &User, _: clmgr::Arg<'_>) -> Result<Ordered> {
            let names = [before, after].map(|user| Side::of(user).to_string());
            self.0.lock().push(names.into());
            Ok(Ordered::Queued(None))
        }
    }

    #[test]
    fn who_follows_a_write_of_some_bytes_does_not_follow_all_of_them_when_stretches_become_one() {
        let selection = platform::select_named(Some("host")).expect("the host platform");
        let bridge = Bridge::open(&selection, &Options::default())
            .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let writer = User::Cl(bridge.queue().expect("a queue"));
        let reader = User::Hip(bridge.stream().expect("a stream"));
        let other = User::Cl(bridge.queue().expect("a queue"));
        let (noting, mut uses) = (Noting::default(), Uses::default());
        let mut admit = |user: &User, access, range: Range<usize>| {
            let claim = Claim {
                access,
                range: &range,
                is_handed_whole: false,
            };
            let subject = clmgr::Arg::Bytes(&[]);
            uses.admit(&noting, subject, user, claim).expect("admitted");
            std::mem::take(&mut *noting.0.lock())
        };
        admit(&writer, Access::Write, 0..4);
        admit(&writer, Access::Write, 8..12);
        assert_eq!(admit(&reader, Access::Read, 0..4).len(), 1);
        assert_eq!(admit(&reader, Access::Read, 0..4), [], "it follows");
        // Too many to be told apart, of bytes that nobody writes.
        for place in 0..=STRETCHES {
            let start = 100 + 2 * place;
            assert_eq!(admit(&other, Access::Read, start..start + 1), []);
        }
        let names = [&writer, &reader].map(|user| Side::of(user).to_string());
        assert_eq!(admit(&reader, Access::Read, 8..12), [names.into()]);
    }
}
