//! [`Turns`] under shuttle, which tries many orders of the threads' steps and reports a deadlock.

/// Shuttle's locks in the shape of [`super::super::sync`].
mod sync {
    pub(super) use shuttle::sync::{Condvar, MutexGuard};

    pub(super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    pub(super) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar.wait(guard).unwrap()
    }
}

// The very source of the pool, over shuttle's locks.
#[allow(clippy::duplicate_mod, reason = "that is the point")]
#[path = "turns.rs"]
mod turns;

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use turns::{Kind, Turn, Turns};

const ORDERS: usize = 2000;

/// Stands for a queue: it counts those that exist and its holders.
struct Thing {
    kind: Kind,
    alive: Arc<AtomicUsize>,
    holders: AtomicUsize,
}

impl Thing {
    fn make(kind: Kind, alive: &Arc<AtomicUsize>, cap: usize) -> Self {
        let before = alive.fetch_add(1, Ordering::SeqCst);
        assert!(before < cap, "more than {cap} exist");
        Self {
            kind,
            alive: alive.clone(),
            holders: AtomicUsize::new(0),
        }
    }

    fn hold(&self, kind: Kind) {
        assert_eq!(self.kind, kind, "a thing of the other kind");
        let before = self.holders.fetch_add(1, Ordering::SeqCst);
        assert_eq!(before, 0, "two hold one thing");
        thread::yield_now();
        self.holders.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lets `threads` threads take `rounds` turns each, of the kind and with the success that they are
/// told, and checks what is left.
fn check(
    cap: usize,
    threads: usize,
    rounds: usize,
    kind: fn(usize, usize) -> Kind,
    can_make: fn(usize, usize) -> bool,
) {
    let mut turns = (0..threads).flat_map(|worker| (0..rounds).map(move |round| (worker, round)));
    let is_simple = turns.all(|(worker, round)| kind(worker, round) == kind(0, 0) && can_make(worker, round));
    let run = move || {
        let turns = Arc::new(Turns::<Thing>::new(cap));
        let alive = Arc::new(AtomicUsize::new(0));
        let made = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (turns, alive, made) = (turns.clone(), alive.clone(), made.clone());
                thread::spawn(move || {
                    for round in 0..rounds {
                        let kind = kind(worker, round);
                        let thing = match turns.next(kind) {
                            Turn::Take(thing) => thing,
                            Turn::Make { instead_of } => {
                                drop(instead_of);
                                if !can_make(worker, round) {
                                    turns.give_up();
                                    continue;
                                }
                                made.fetch_add(1, Ordering::SeqCst);
                                Thing::make(kind, &alive, cap)
                            }
                        };
                        thing.hold(kind);
                        turns.put(kind, thing);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        let counts = turns.counts();
        assert_eq!(counts.waiting, 0, "someone still waits");
        assert_eq!(counts.all, counts.idle, "one was lost, or a right to make one");
        assert_eq!(counts.all, alive.load(Ordering::SeqCst));
        assert!(counts.all <= cap && counts.cap == cap);
        if is_simple {
            let made = made.load(Ordering::SeqCst);
            assert_eq!(made, counts.all, "one that could be passed on was replaced");
        }
    };
    shuttle::check_random(run, ORDERS);
    shuttle::check_pct(run, ORDERS, 3);
}

#[test]
fn every_thread_gets_its_turn_and_no_queue_has_two_holders() {
    check(2, 4, 3, |_, _| false, |_, _| true);
}

#[test]
fn a_queue_of_the_other_kind_makes_room_within_the_cap() {
    check(1, 3, 3, |worker, _| worker % 2 == 0, |_, _| true);
    check(2, 4, 2, |worker, round| (worker + round) % 2 == 0, |_, _| true);
}

#[test]
fn a_queue_that_cannot_be_created_costs_no_turn() {
    check(
        1,
        4,
        2,
        |worker, _| worker == 0,
        |worker, round| (worker + round) % 3 != 0,
    );
    check(2, 3, 2, |_, _| true, |_, _| false);
}
