use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::access::Outcome;
use crate::access::alias::Span;
use crate::access::ledger::{AccessLedger, Claim, Hold, Order, Worker};
use crate::{Error, Result};

/// The failures that a view keeps for its users.
pub(super) const MOST_HEARD: usize = 64;

/// The live views of some memory.
///
/// Its lock is held only for lookups, never during a wait.
pub(crate) struct Views<W: Worker>(pub(super) Mutex<Vec<Weak<View<W>>>>);

/// The users of some bytes, which may have several addresses.
pub(crate) struct View<W: Worker> {
    spans: Vec<Span>,
    uses: Mutex<AccessLedger<W>>,
    /// Failures of hand-offs of other views, which this view's users still have to learn of. Its lock is held for
    /// nothing else, so that it may be taken under any other.
    heard: Mutex<VecDeque<String>>,
    /// Another view shows some of the same bytes.
    aliased: AtomicBool,
    /// No other view may show any of the bytes.
    alone: bool,
    /// The bytes are about to be, or have been, moved elsewhere: no other view may show the old ones.
    sealed: AtomicBool,
}

impl<W: Worker> Views<W> {
    /// A view of the bytes at these addresses; `None` if another view shows some of them, and one of the two must be
    /// `alone`, or the other is [sealed](Self::seal).
    pub(crate) fn enter(&self, spans: Vec<Span>, alone: bool) -> Option<Arc<View<W>>> {
        let view = Arc::new(View {
            spans,
            uses: Mutex::new(AccessLedger::default()),
            heard: Mutex::new(VecDeque::new()),
            aliased: AtomicBool::new(false),
            alone,
            sealed: AtomicBool::new(false),
        });
        let mut views = self.0.lock();
        views.retain(|other| other.strong_count() > 0);
        let others = overlapping(&views, &view);
        if others
            .iter()
            .any(|other| alone || other.alone || other.sealed.load(Ordering::Acquire))
        {
            return None;
        }
        for other in others {
            // Does not take the lock of the view, which may be held during a wait. This view's first use takes
            // that lock too, so it finds a use that is being granted under it; a later use looks here itself.
            other.aliased.store(true, Ordering::Release);
            view.aliased.store(true, Ordering::Release);
        }
        views.push(Arc::downgrade(&view));
        Some(view)
    }

    /// Removes the view from the list, before its memory is freed and the addresses are reused.
    pub(crate) fn leave(&self, view: &View<W>) {
        self.0.lock().retain(|other| !std::ptr::eq(other.as_ptr(), view));
    }

    /// Puts `user` after every user whose access to these bytes of the view conflicts, enters it, and does `then`
    /// before anyone else is admitted. The users of other views are waited for on the host. The hold is for the guard
    /// to keep.
    ///
    /// Meanwhile it holds the locks of the views that show these bytes, and no others.
    pub(crate) fn admit<R>(
        &self,
        view: &View<W>,
        order: &dyn Order<W>,
        user: &W,
        claim: Claim<'_>,
        then: impl FnOnce(&mut AccessLedger<W>) -> Result<R>,
    ) -> Result<(R, Hold)> {
        let mut uses = view.uses.lock();
        if !view.is_aliased() {
            // A view may be entering: it hears of what fails from now on.
            self.tell_others(view, &mut uses);
            let hold = uses.admit(order, user, claim)?;
            return Ok((then(&mut uses)?, hold));
        }
        drop(uses);
        loop {
            let others = self.others_of(view);
            let mut all: Vec<&View<W>> = others.iter().map(|other| &**other).collect();
            all.push(view);
            // Always in the same order, so that two grants cannot deadlock.
            all.sort_by_key(|view| std::ptr::from_ref(*view).addr());
            let mut locked: Vec<(&View<W>, MutexGuard<'_, AccessLedger<W>>)> =
                all.into_iter().map(|view| (view, view.uses.lock())).collect();
            // A view entered before the locks were taken may have a user by now; a later one finds the locks held.
            let is_known = |other: &Arc<View<W>>| others.iter().any(|known| Arc::ptr_eq(known, other));
            if !self.others_of(view).iter().all(is_known) {
                continue;
            }
            self.spread(&mut locked);
            view.check_heard()?;
            for (other, uses) in &mut locked {
                if !std::ptr::eq(*other, view) {
                    uses.wait_before(order, user, claim.access)?;
                }
            }
            self.spread(&mut locked);
            view.check_heard()?;
            let (own, others): (Vec<_>, Vec<_>) =
                locked.iter_mut().partition(|(locked, _)| std::ptr::eq(*locked, view));
            let writers = others.iter().flat_map(|(_, uses)| uses.writers()).collect();
            let (_, uses) = own.into_iter().next().expect("it is locked with the others");
            let hold = uses.admit(order, user, claim)?;
            uses.rely_on(writers);
            let done = then(uses);
            uses.rely_on(Vec::new());
            return Ok((done?, hold));
        }
    }

    /// Ends a view whose users were waited for, or could not be: takes the failures of its hand-offs that no user was
    /// told, after the other views have heard of them.
    pub(crate) fn take_errors(&self, view: &View<W>) -> Vec<Error> {
        let mut uses = view.uses.lock();
        self.tell_others(view, &mut uses);
        uses.take_errors()
    }

    fn spread(&self, locked: &mut [(&View<W>, MutexGuard<'_, AccessLedger<W>>)]) {
        for (view, uses) in locked {
            self.tell_others(view, uses);
        }
    }

    /// Tells each other view of the bytes which hand-offs of this one have failed.
    fn tell_others(&self, view: &View<W>, uses: &mut AccessLedger<W>) {
        let news = uses.take_news();
        if news.is_empty() {
            return;
        }
        for other in self.others_of(view) {
            let mut heard = other.heard.lock();
            // A view without users is never asked. The first ones tell that its bytes are not as its users expect.
            let room = MOST_HEARD.saturating_sub(heard.len());
            heard.extend(news.iter().take(room).cloned());
        }
    }

    /// Keeps other views away from the bytes of this one, whose data moves elsewhere. `false` if another view shows
    /// some of them now.
    pub(crate) fn seal(&self, view: &View<W>) -> bool {
        // Under this lock no other view enters.
        let views = self.0.lock();
        let is_only = overlapping(&views, view).is_empty();
        view.sealed.store(is_only, Ordering::Release);
        is_only
    }

    /// The data has stayed.
    pub(crate) fn unseal(&self, view: &View<W>) {
        view.sealed.store(false, Ordering::Release);
    }

    fn others_of(&self, view: &View<W>) -> Vec<Arc<View<W>>> {
        overlapping(&self.0.lock(), view)
    }
}

impl<W: Worker> View<W> {
    pub(crate) fn is_aliased(&self) -> bool {
        self.aliased.load(Ordering::Acquire)
    }

    /// The first hand-off failure known so far, of this view or of another one.
    pub(crate) fn check(&self) -> Result<()> {
        self.uses.lock().check()?;
        self.check_heard()
    }

    fn check_heard(&self) -> Result<()> {
        match self.heard.lock().pop_front() {
            Some(reason) => Err(Error::AnotherView { reason }),
            None => Ok(()),
        }
    }

    /// Hand-offs that may still fail.
    pub(crate) fn users(&self) -> Vec<W> {
        self.uses.lock().users()
    }

    pub(crate) fn on_their_way(&self) -> Vec<Arc<Outcome>> {
        self.uses.lock().on_their_way()
    }

    /// Waits for this view's users and forgets them: no guard is alive.
    pub(crate) fn drain(&self, order: &dyn Order<W>) -> Result<()> {
        self.uses.lock().drain(order)
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let shows = |span: &Span| other.spans.iter().any(|theirs| span.overlaps(theirs));
        self.spans.iter().any(shows)
    }
}

fn overlapping<W: Worker>(views: &[Weak<View<W>>], view: &View<W>) -> Vec<Arc<View<W>>> {
    views
        .iter()
        .filter_map(Weak::upgrade)
        .filter(|other| !std::ptr::eq(&**other, view) && other.overlaps(view))
        .collect()
}
