use std::ops::Range;

use super::Worker;
use super::hold::Holds;
use crate::values::Access;

/// How a user may access some bytes.
///
/// Each byte of the range is independent: what is known of some of them says nothing about the
/// others, whose guard may be alive and about to enqueue more.
///
/// A write record ends once its user has been waited for: while a guard that writes the bytes is alive, no other user
/// is granted them, so that user has nothing more to write. A read record ends when a writer is granted its bytes,
/// because until then a guard that reads them may be alive and its user may receive more work; or earlier, when none is
/// alive and that work has ended. So one user's writes and reads of the same bytes are two records.
pub(super) struct Entry<W: Worker> {
    pub(super) user: W,
    pub(super) access: Access,
    /// The bytes it may touch.
    pub(super) range: Range<usize>,
    /// The users already ordered after this one's writes.
    pub(super) followers: Vec<W>,
    /// The guards that read the bytes.
    pub(super) holds: Holds,
    /// Set once no guard was left, at the end of its user's work under them.
    pub(super) mark: Option<W::Mark>,
}

impl<W: Worker> Entry<W> {
    pub(super) fn new(user: W, access: Access, range: Range<usize>) -> Self {
        Self {
            user,
            access,
            range,
            followers: Vec::new(),
            holds: Holds::default(),
            mark: None,
        }
    }

    pub(super) fn conflicts(&self, user: &W, access: Access, range: &Range<usize>) -> bool {
        if self.user.is_same(user) || !meets(&self.range, range) {
            return false;
        }
        match access {
            Access::Write => true,
            Access::Read => self.access == Access::Write && !self.followers.iter().any(|f| f.is_same(user)),
        }
    }

    /// Keeps the bytes of `range`, and returns the rest: before it and after it.
    pub(super) fn split(&mut self, range: &Range<usize>) -> [Option<Self>; 2] {
        let Range { start, end } = self.range.clone();
        let part = |range: Range<usize>| {
            (!range.is_empty()).then(|| Self {
                followers: self.followers.clone(),
                holds: self.holds.clone(),
                ..Self::new(self.user.clone(), self.access, range)
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

pub(super) fn covers(whole: &Range<usize>, part: &Range<usize>) -> bool {
    whole.start <= part.start && part.end <= whole.end
}
