//! Which views show the same bytes, so that work on one is ordered after work on the others.
//!
//! Code may hand over the same memory twice: a buffer and a part of it, a `cl_mem` and its address,
//! an allocation and its import. Each view tracks its own users; a grant also waits for the users
//! of every overlapping view.

#[cfg(test)]
mod model;
mod sync;
#[cfg(test)]
mod threads;
mod view;

use std::fs::File;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;

use clmgr::opencl_sys::cl_mem;
pub(crate) use view::{View, Views};

use crate::access::ledger::User;

/// How bytes are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The address that a device of this process uses.
    Address,
    /// A buffer object of OpenCL, by its handle; for a part, the object that it is a part of.
    Object(usize),
    /// A place in a file, which may be mapped at several addresses.
    File { device: u64, inode: u64 },
}

impl Space {
    /// The file behind a descriptor. Some drivers' descriptors all name one device file; their
    /// memory is then taken for the same, which costs waits but no ordering.
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

    /// Bytes of a buffer object that is not a part of another one.
    pub(crate) fn of_object(object: cl_mem, range: Range<usize>) -> Self {
        Self {
            space: Space::Object(object.addr()),
            range,
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.space == other.space && self.range.start < other.range.end && other.range.start < self.range.end
    }
}

/// Every live view, of any bridge.
pub(crate) static VIEWS: Views<User> = Views(sync::Mutex::new(Vec::new()));

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a view may have several ranges; most have one"
)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use super::*;
    use crate::access::ledger::{AccessLedger, Claim, Order, Worker};
    use crate::access::{Ordered, Outcome};
    use crate::values::Access;
    use crate::{Error, Result};

    fn enter(ranges: &[Range<usize>]) -> Arc<View<User>> {
        let at = |range: &Range<usize>| Span::at(range.start, range.len());
        let view = VIEWS.enter(ranges.iter().map(at).collect(), false);
        view.expect("none is alone")
    }

    fn is_aliased(view: &View<User>) -> bool {
        view.is_aliased()
    }

    #[test]
    fn views_alias_only_if_they_share_a_byte() {
        // Addresses that no test memory has.
        let low = enter(&[0x10..0x20]);
        let (next, before) = (enter(&[0x20..0x30]), enter(&[0x8..0x10]));
        assert!(!is_aliased(&low) && !is_aliased(&next) && !is_aliased(&before));
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
    fn a_view_that_must_be_alone_is() {
        let enter = |at: usize, alone| VIEWS.enter(vec![Span::at(at, 0x10)], alone);
        let shared = enter(0x80, false).expect("no other view");
        assert!(enter(0x88, true).is_none() && !is_aliased(&shared));
        drop(shared);
        let alone = enter(0x88, true).expect("no other view");
        assert!(enter(0x80, false).is_none() && !is_aliased(&alone));
        drop(enter(0x98, false).expect("beside it"));
    }

    #[test]
    fn bytes_whose_data_moves_elsewhere_are_not_shown_by_another_view() {
        let views = Views::<User>(sync::Mutex::new(Vec::new()));
        let enter = |at: usize| views.enter(vec![Span::at(at, 8)], false);
        let moving = enter(0x10).expect("no other view");
        let other = enter(0x14).expect("both show the same bytes");
        assert!(!views.seal(&moving), "the other would be left behind");
        drop(other);
        assert!(views.seal(&moving));
        assert!(enter(0x14).is_none());
        views.unseal(&moving);
        assert!(enter(0x14).is_some());
    }

    #[test]
    fn a_dropped_view_is_not_an_alias() {
        drop(enter(&[0x60..0x70]));
        assert!(!is_aliased(&enter(&[0x60..0x70])));
    }

    #[test]
    fn a_view_that_left_is_not_an_alias_even_while_it_lives() {
        let views = Views::<User>(sync::Mutex::new(Vec::new()));
        let enter = |alone| views.enter(vec![Span::at(0x10, 0x10)], alone);
        let left = enter(false).expect("no other view");
        views.leave(&left);
        let alone = enter(true).expect("the other has left");
        assert!(enter(false).is_none());
        assert!(!is_aliased(&left) && !is_aliased(&alone));
    }

    #[test]
    fn dropped_views_do_not_accumulate() {
        let views = Views::<User>(sync::Mutex::new(Vec::new()));
        for at in 0..100 {
            views.enter(vec![Span::at(at, 1)], false);
        }
        assert_eq!(views.0.lock().len(), 1, "the last one");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's files have no numbers")]
    fn descriptors_of_one_file_are_one_space() {
        let [file, other] = [(); 2].map(|()| tempfile::tempfile().expect("a file"));
        let again = file.try_clone().expect("a descriptor");
        let space = |file: &File| Space::of_file(file.as_fd()).expect("a file");
        assert_eq!(space(&file), space(&again));
        assert_ne!(space(&file), space(&other));
        assert_ne!(space(&file), Space::Address);
    }

    /// A queue that is only a number; from [`STREAM`] on, a stream.
    #[derive(Clone)]
    struct Number(u8);

    const STREAM: u8 = 100;

    impl Worker for Number {
        type Mark = ();

        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }

        fn shares_api(&self, _: &Self) -> bool {
            true
        }

        fn orders_any_memory(&self) -> bool {
            self.0 >= STREAM
        }

        fn may_read_more(&self, _: bool) -> bool {
            true
        }

        fn has_ended(&self, _: &mut Option<()>) -> Result<bool> {
            Ok(false)
        }
    }

    /// Each hand-off has this outcome.
    struct Queueing(Arc<Outcome>);

    impl Order<Number> for Queueing {
        fn put(&self, _: &Number, _: &Number) -> Result<Ordered> {
            Ok(Ordered::Queued(Some(Arc::clone(&self.0))))
        }

        fn wait(&self, _: &Number, _: Option<&Number>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_hand_off_that_fails_is_told_once_by_its_view() {
        let views = Views(sync::Mutex::new(Vec::new()));
        for is_checked in [true, false] {
            let view = views.enter(vec![Span::at(0x10, 8)], true).expect("alone");
            let outcome = Arc::<Outcome>::default();
            let order = Queueing(Arc::clone(&outcome));
            for user in [1, 2] {
                let claim = Claim {
                    access: Access::Write,
                    range: &(0..8),
                    is_handed_whole: false,
                };
                let granted = views.admit(&view, &order, &Number(user), claim, |_| Ok(()));
                granted.map(drop).expect("granted");
            }
            assert!(matches!(&*view.on_their_way(), [known] if Arc::ptr_eq(known, &outcome)));
            view.check().expect("nothing is known");
            outcome.told(Err(Error::Empty));
            if is_checked {
                assert!(matches!(view.check(), Err(Error::Empty)));
            } else {
                assert!(matches!(&*views.take_errors(&view), [Error::Empty]));
            }
            assert!(view.on_their_way().is_empty() && views.take_errors(&view).is_empty());
            view.check().expect("it was told");
        }
    }

    /// Of three views of the same bytes, the first has a failed hand-off; another one shows other bytes.
    #[test]
    fn every_other_view_of_the_bytes_hears_of_a_failure_once() {
        for ends in [true, false] {
            let views = Views::<Number>(sync::Mutex::new(Vec::new()));
            let enter = |at| views.enter(vec![Span::at(at, 8)], false).expect("a view");
            let [failing, beside, also, other] = [0x10, 0x14, 0x12, 0x1C].map(enter);
            let outcome = Arc::<Outcome>::default();
            let order = Queueing(Arc::clone(&outcome));
            let claim = Claim {
                access: Access::Write,
                range: &(0..8),
                is_handed_whole: false,
            };
            let admit = |view, user| views.admit(view, &order, &Number(user), claim, |_| Ok(())).map(drop);
            admit(&failing, 1).expect("the first");
            admit(&failing, 2).expect("queued behind it");
            outcome.told(Err(Error::Empty));
            if ends {
                assert!(matches!(&*views.take_errors(&failing), [Error::Empty]));
                views.leave(&failing);
            } else {
                assert!(
                    matches!(failing.check(), Err(Error::Empty)),
                    "its own users hear of it first"
                );
            }
            for view in [&beside, &also] {
                let told = admit(view, 3);
                assert!(
                    matches!(&told, Err(Error::AnotherView { reason }) if *reason == Error::Empty.to_string() || reason.contains("told already")),
                    "{told:?}"
                );
                admit(view, 3).expect("it was told");
            }
            admit(&other, 4).expect("it shows other bytes");
        }
    }

    /// Gives up the second hand-off when it is told to, while a user is waited for.
    struct GivingUp {
        outcomes: [Arc<Outcome>; 2],
        gives_up: std::cell::Cell<bool>,
    }

    impl Order<Number> for GivingUp {
        fn put(&self, before: &Number, _: &Number) -> Result<Ordered> {
            let outcome = &self.outcomes[usize::from(before.0) / 2];
            Ok(Ordered::Queued(Some(Arc::clone(outcome))))
        }

        fn wait(&self, _: &Number, _: Option<&Number>) -> Result<()> {
            if self.gives_up.get() {
                self.outcomes[1].told(Err(Error::Empty));
            }
            Ok(())
        }
    }

    /// A stream is in order with its own work on another view, but that work may run too early.
    #[test]
    fn a_stream_behind_a_hand_off_that_may_fail_is_waited_for_though_it_uses_the_other_view_itself() {
        let views = Views::<Number>(sync::Mutex::new(Vec::new()));
        let enter = || views.enter(vec![Span::at(0x10, 8)], false).expect("a view");
        let (one, other) = (enter(), enter());
        let order = GivingUp {
            outcomes: Default::default(),
            gives_up: true.into(),
        };
        let admit = |view, user, access| {
            let claim = Claim {
                access,
                range: &(0..8),
                is_handed_whole: false,
            };
            views.admit(view, &order, &Number(user), claim, |_| Ok(())).map(drop)
        };
        admit(&one, 2, Access::Write).expect("the first");
        admit(&one, STREAM, Access::Write).expect("queued behind it");
        let read = admit(&other, STREAM, Access::Read);
        assert!(matches!(read, Err(Error::AnotherView { .. })), "{read:?}");
    }

    #[test]
    fn who_wrote_the_bytes_of_another_view_is_known_to_their_reader() {
        let views = Views::<Number>(sync::Mutex::new(Vec::new()));
        let enter = || views.enter(vec![Span::at(0x10, 8)], false).expect("a view");
        let (one, other) = (enter(), enter());
        let order = Queueing(Arc::default());
        let admit = |view, user, access| {
            let claim = Claim {
                access,
                range: &(0..8),
                is_handed_whole: false,
            };
            let writers = |uses: &mut AccessLedger<Number>| Ok(uses.writers());
            let granted = views.admit(view, &order, &Number(user), claim, writers);
            granted
                .expect("admitted")
                .0
                .into_iter()
                .map(|writer| writer.0)
                .collect::<Vec<_>>()
        };
        // The first has failed, which its driver does not tell the second.
        admit(&one, 1, Access::Write);
        admit(&one, 2, Access::Write);
        let mut writers = admit(&other, 3, Access::Read);
        writers.sort_unstable();
        assert_eq!(writers, [1, 2]);
    }

    #[test]
    fn a_hand_off_given_up_while_all_are_waited_for_is_told_to_the_other_views_user() {
        let views = Views::<Number>(sync::Mutex::new(Vec::new()));
        let enter = || views.enter(vec![Span::at(0x10, 8)], false).expect("a view");
        let (one, other) = (enter(), enter());
        let order = GivingUp {
            outcomes: Default::default(),
            gives_up: false.into(),
        };
        let admit = |view, user, range: &Range<usize>, access| {
            let claim = Claim {
                access,
                range,
                is_handed_whole: false,
            };
            views.admit(view, &order, &Number(user), claim, |_| Ok(())).map(drop)
        };
        for (user, range) in [(0, 0..4), (1, 0..4), (2, 4..8), (3, 4..8)] {
            admit(&one, user, &range, Access::Write).expect("admitted");
        }
        order.outcomes[0].told(Err(Error::NoSlots));
        let read = || admit(&other, 5, &(0..8), Access::Read);
        assert!(matches!(read(), Err(Error::AnotherView { .. })), "the first");
        order.gives_up.set(true);
        assert!(matches!(read(), Err(Error::AnotherView { .. })), "the second");
        order.gives_up.set(false);
        read().expect("the host has waited for all");
    }

    /// Gives every hand-off up.
    struct Failing;

    impl Order<Number> for Failing {
        fn put(&self, _: &Number, _: &Number) -> Result<Ordered> {
            let outcome = Arc::<Outcome>::default();
            outcome.told(Err(Error::NoSlots));
            Ok(Ordered::Queued(Some(outcome)))
        }

        fn wait(&self, _: &Number, _: Option<&Number>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn failures_for_a_view_without_users_are_kept_up_to_a_bound() {
        let views = Views::<Number>(sync::Mutex::new(Vec::new()));
        let enter = || views.enter(vec![Span::at(0x10, 8)], false).expect("a view");
        let (one, other) = (enter(), enter());
        let write = |user| {
            let claim = Claim {
                access: Access::Write,
                range: &(0..8),
                is_handed_whole: false,
            };
            // Its own view is told each failure.
            let granted = views.admit(&one, &Failing, &Number(user), claim, |_| Ok(()));
            granted.is_err()
        };
        assert!((0..200).filter(|user| write(*user)).count() > view::MOST_HEARD);
        let told = (0..200).filter(|_| matches!(other.check(), Err(Error::AnotherView { .. })));
        assert_eq!(told.count(), view::MOST_HEARD);
    }
}
