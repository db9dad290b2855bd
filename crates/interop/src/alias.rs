//! Which views show the same bytes, so that work on one is ordered after work on the others.
//!
//! Code that hands memory over may hand it over twice: a buffer and a part of it, a `cl_mem` and
//! its address, an allocation and its import. Each view remembers its own users; before a use is
//! granted, the users of every overlapping view are waited for as well.

use crate::handoff::{Handoff, Outcome};
use crate::uses::{Claim, User, Uses};
use crate::{Error, Result};
use parking_lot::Mutex;
use std::fs::File;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

/// By what bytes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The address that a device of this process uses.
    Address,
    /// A place in a file, which may be mapped at several addresses.
    File { device: u64, inode: u64 },
}

impl Space {
    /// The file behind a descriptor. Descriptors of some drivers are all of one device file; their
    /// memory is then taken for the same, which costs waits and no order.
    pub(crate) fn of_file(fd: BorrowedFd<'_>) -> Option<Self> {
        let file = File::from(fd.try_clone_to_owned().ok()?);
        let data = file.metadata().ok()?;
        Some(Self::File {
            device: data.dev(),
            inode: data.ino(),
        })
    }
}

/// Some bytes.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) space: Space,
    pub(crate) range: Range<usize>,
}

impl Span {
    /// Bytes at an address.
    pub(crate) fn at(address: usize, bytes: usize) -> Self {
        Self {
            space: Space::Address,
            range: address..address.saturating_add(bytes),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.space == other.space
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

/// Every living view, of any bridge.
static VIEWS: Mutex<Vec<Weak<View>>> = Mutex::new(Vec::new());

/// Held while one of several overlapping views grants a use.
static ALIASES: Mutex<()> = Mutex::new(());

/// The users of some bytes, which may have several addresses.
pub(crate) struct View {
    spans: Vec<Span>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    uses: Uses,
    /// Another view shows some of the same bytes.
    aliased: bool,
}

impl View {
    /// A view of the bytes at these addresses.
    pub(crate) fn enter(spans: Vec<Span>) -> Arc<Self> {
        let view = Arc::new(Self {
            spans,
            state: Mutex::default(),
        });
        let mut views = VIEWS.lock();
        views.retain(|other| other.strong_count() > 0);
        for other in overlapping(&views, &view) {
            // Under its lock: a use that is being granted is then either entered already, and
            // found by this view's first use, or looks here for itself.
            other.state.lock().aliased = true;
            view.state.lock().aliased = true;
        }
        views.push(Arc::downgrade(&view));
        view
    }

    /// Puts `user` after every user whose access to these bytes of the view conflicts, enters it, and
    /// does `then` before anyone else is admitted. The users of other views are waited for on the host. `subject` is the
    /// memory.
    pub(crate) fn admit<R>(
        &self,
        handoff: &dyn Handoff,
        subject: clmgr::Arg<'_>,
        user: &User,
        claim: Claim<'_>,
        then: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let mut state = self.state.lock();
        if !state.aliased {
            state.uses.admit(handoff, subject, user, claim)?;
            return then();
        }
        drop(state);
        let _one_at_a_time = ALIASES.lock();
        let others = overlapping(&VIEWS.lock(), self);
        for other in others {
            let uses = &mut other.state.lock().uses;
            uses.wait_before(handoff, user, claim.access)?;
        }
        let mut state = self.state.lock();
        state.uses.admit(handoff, subject, user, claim)?;
        then()
    }

    /// Takes the view off the list, before its memory goes and the addresses come to others.
    pub(crate) fn leave(&self) {
        VIEWS
            .lock()
            .retain(|other| !std::ptr::eq(other.as_ptr(), self));
    }

    /// The first failure of a hand-off that is known by now.
    pub(crate) fn check(&self) -> Result<()> {
        self.state.lock().uses.check()
    }

    /// Hand-offs that may still fail.
    pub(crate) fn on_their_way(&self) -> Vec<Arc<Outcome>> {
        self.state.lock().uses.on_their_way()
    }

    /// Waits for this view's users.
    pub(crate) fn drain(&self, handoff: &dyn Handoff) -> Result<()> {
        self.state.lock().uses.drain(handoff)
    }

    /// Failures of hand-offs that nobody was told of.
    pub(crate) fn take_errors(&self) -> Vec<Error> {
        self.state.lock().uses.take_errors()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let shows = |span: &Span| other.spans.iter().any(|theirs| span.overlaps(theirs));
        self.spans.iter().any(shows)
    }
}

fn overlapping(views: &[Weak<View>], view: &View) -> Vec<Arc<View>> {
    views
        .iter()
        .filter_map(Weak::upgrade)
        .filter(|other| !std::ptr::eq(&**other, view) && other.overlaps(view))
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a view may have several ranges; most have one"
)]
mod tests {
    use super::*;

    fn enter(ranges: &[Range<usize>]) -> Arc<View> {
        let at = |range: &Range<usize>| Span::at(range.start, range.len());
        View::enter(ranges.iter().map(at).collect())
    }

    fn is_aliased(view: &View) -> bool {
        view.state.lock().aliased
    }

    #[test]
    fn views_alias_only_if_they_share_a_byte() {
        // Addresses that no test's memory has.
        let low = enter(&[0x10..0x20]);
        let next = enter(&[0x20..0x30]);
        assert!(!is_aliased(&low) && !is_aliased(&next));
        let across = enter(&[0x1F..0x21]);
        assert!(is_aliased(&low) && is_aliased(&next) && is_aliased(&across));
    }

    #[test]
    fn a_second_address_of_the_same_bytes_is_found() {
        let original = enter(&[0x40..0x50, 0x140..0x150]);
        let import = enter(&[0x148..0x149]);
        assert!(is_aliased(&original) && is_aliased(&import));
    }

    #[test]
    fn a_view_that_is_gone_is_no_alias() {
        drop(enter(&[0x60..0x70]));
        assert!(!is_aliased(&enter(&[0x60..0x70])));
    }
}
