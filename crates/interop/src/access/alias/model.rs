//! [`Views`] under shuttle, which tries many interleavings of the threads and reports deadlocks.

/// Shuttle's locks behind the interface of [`super::super::sync`].
mod sync {
    pub(super) use shuttle::sync::MutexGuard;
    pub(super) use shuttle::sync::atomic::{AtomicBool, Ordering};

    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

// The source of the views itself, compiled with shuttle's locks.
#[allow(clippy::duplicate_mod, reason = "that is the point")]
#[allow(dead_code, reason = "the model uses a part of it")]
#[path = "view.rs"]
mod view;

use std::ops::Range;
use std::sync::Arc;

use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use view::Views;

use crate::Result;
use crate::access::Ordered;
use crate::access::alias::Span;
use crate::access::ledger::{Claim, Order, Worker};
use crate::values::Access;

const ORDERS: usize = 2000;
const WORKERS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Number(usize);

impl Worker for Number {
    type Mark = ();

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn shares_api(&self, _: &Self) -> bool {
        true
    }

    fn orders_any_memory(&self) -> bool {
        true
    }

    fn may_read_more(&self, _: bool) -> bool {
        true
    }

    fn has_ended(&self, _: &mut Option<()>) -> Result<bool> {
        Ok(false)
    }
}

/// How much work each worker received, and how much is known to have ended.
#[derive(Default)]
struct World {
    work: Mutex<[(usize, usize); WORKERS]>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn wait_for(&self, worker: Number) {
        let given = self.work.lock().unwrap()[worker.0].0;
        thread::yield_now();
        let ended = &mut self.work.lock().unwrap()[worker.0].1;
        *ended = given.max(*ended);
    }
}

impl Order<Number> for World {
    fn put(&self, before: &Number, _: &Number) -> Result<Ordered> {
        self.wait_for(*before);
        Ok(Ordered::Waited)
    }

    fn wait(&self, before: &Number, _: Option<&Number>) -> Result<()> {
        self.wait_for(*before);
        Ok(())
    }
}

fn views() -> Arc<Views<Number>> {
    Arc::new(Views(sync::Mutex::new(Vec::new())))
}

fn write(range: &Range<usize>) -> Claim<'_> {
    Claim {
        access: Access::Write,
        range,
        is_handed_whole: false,
    }
}

fn check(run: fn()) {
    shuttle::check_random(run, ORDERS);
    shuttle::check_pct(run, ORDERS, 3);
}

/// Each thread writes through its own view; the middle view shows bytes of both others.
fn views_that_overlap() {
    let (views, world) = (views(), World::new());
    let spans = [0..6, 4..10, 8..14];
    let threads: Vec<_> = (0..WORKERS)
        .map(|own| {
            let (views, world, spans) = (Arc::clone(&views), Arc::clone(&world), spans.clone());
            thread::spawn(move || {
                let span = &spans[own];
                let view = views
                    .enter(vec![Span::at(span.start, span.len())], false)
                    .expect("none is alone");
                for _ in 0..2 {
                    let granted = |_: &mut _| {
                        let mut work = world.work.lock().unwrap();
                        for (other, bytes) in spans.iter().enumerate() {
                            let overlaps = bytes.start < span.end && span.start < bytes.end;
                            let (given, ended) = work[other];
                            assert!(
                                other == own || !overlaps || given == ended,
                                "{own} writes while {other} is at work"
                            );
                        }
                        work[own].0 += 1;
                        Ok(())
                    };
                    views
                        .admit(&view, &*world, &Number(own), write(&(0..6)), granted)
                        .map(drop)
                        .expect("granted");
                }
                // Its work has not been waited for.
                view
            })
        })
        .collect();
    let kept: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    assert!(kept.iter().all(std::result::Result::is_ok));
}

#[test]
fn users_of_overlapping_views_are_ordered() {
    check(views_that_overlap);
}

/// Ends a wait when another thread says so.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Order<Number> for Gate {
    fn put(&self, before: &Number, _: &Number) -> Result<Ordered> {
        self.wait(before, None)?;
        Ok(Ordered::Waited)
    }

    fn wait(&self, _: &Number, _: Option<&Number>) -> Result<()> {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        Ok(())
    }
}

/// One waits for work that ends only after another view has been granted.
fn views_that_do_not() {
    let (views, gate) = (views(), Arc::new(Gate::default()));
    let enter = |at: usize| {
        let view = views.enter(vec![Span::at(at, 4)], false);
        view.expect("none is alone")
    };
    let (first, second, far, beside) = (enter(0), enter(0), enter(100), enter(100));
    let admit = |view, order: &dyn Order<Number>, worker| {
        let granted = views.admit(view, order, &Number(worker), write(&(0..4)), |_| Ok(()));
        granted.map(drop)
    };
    admit(&first, &World::default(), 0).expect("there are no other users");
    let waiting = thread::spawn({
        let (views, gate) = (Arc::clone(&views), Arc::clone(&gate));
        move || {
            let claim = write(&(0..4));
            views
                .admit(&second, &*gate, &Number(1), claim, |_| Ok(()))
                .map(drop)
                .expect("the gate opens");
        }
    });
    admit(&far, &World::default(), 1).expect("there are no other users");
    admit(&beside, &World::default(), 2).expect("it was waited for");
    // Creating or dropping a view of the bytes being waited for does not block either.
    views.leave(&enter(0));
    gate.open();
    waiting.join().unwrap();
}

#[test]
fn a_blocked_grant_does_not_block_views_of_other_bytes() {
    check(views_that_do_not);
}
