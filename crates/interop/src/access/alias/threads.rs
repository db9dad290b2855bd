//! The ledger between real threads, for ThreadSanitizer and Miri: jobs on plain memory that nothing but the ledger
//! orders.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock, Weak, mpsc};
use std::thread;

use super::{Span, View, Views, sync};
use crate::Result;
use crate::access::Ordered;
use crate::access::ledger::{Claim, Order, Worker};
use crate::values::Access;

const LANES: usize = 12;
const THREADS: usize = 4;
const BYTES: usize = 8;
const ROUNDS: usize = if cfg!(miri) { 6 } else { 1000 };

type Job = Box<dyn FnOnce() + Send>;

/// A thread that runs jobs in order, as a queue does.
#[derive(Clone)]
struct Lane(Arc<Jobs>);

struct Jobs {
    number: usize,
    /// The jobs that it received, counted and sent in one step.
    given: Mutex<(usize, mpsc::Sender<Job>)>,
    done: Mutex<usize>,
    ended: Condvar,
}

/// Ends all waits for a lane whose job panicked.
struct Lost(Weak<Jobs>);

impl Lost {
    fn tell(&self, change: impl FnOnce(&mut usize)) {
        if let Some(jobs) = self.0.upgrade() {
            change(&mut jobs.done.lock().unwrap());
            jobs.ended.notify_all();
        }
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.tell(|done| *done = usize::MAX);
    }
}

impl Lane {
    fn start(number: usize) -> Self {
        let (sender, jobs) = mpsc::channel::<Job>();
        let lane = Self(Arc::new(Jobs {
            number,
            given: Mutex::new((0, sender)),
            done: Mutex::default(),
            ended: Condvar::new(),
        }));
        let own = Lost(Arc::downgrade(&lane.0));
        thread::spawn(move || {
            for job in jobs {
                job();
                own.tell(|done| *done += 1);
            }
        });
        lane
    }

    fn give(&self, job: impl FnOnce() + Send + 'static) {
        let (given, sender) = &mut *self.0.given.lock().unwrap();
        *given += 1;
        sender.send(Box::new(job)).expect("the thread lives");
    }

    fn given(&self) -> usize {
        self.0.given.lock().unwrap().0
    }

    fn wait_for(&self, number: usize) {
        let done = self.0.done.lock().unwrap();
        let waited = self.0.ended.wait_while(done, |done| *done < number);
        drop(waited.unwrap());
    }
}

impl Worker for Lane {
    type Mark = usize;

    fn is_same(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }

    fn shares_api(&self, other: &Self) -> bool {
        self.0.number % 2 == other.0.number % 2
    }

    fn orders_any_memory(&self) -> bool {
        true
    }

    fn may_read_more(&self, held: bool) -> bool {
        held
    }

    fn has_ended(&self, mark: &mut Option<usize>) -> Result<bool> {
        let marked = *mark.get_or_insert_with(|| self.given());
        Ok(*self.0.done.lock().unwrap() >= marked)
    }
}

/// Waits at times, and at times lets the other lane wait.
#[derive(Default)]
struct Orders(AtomicUsize);

impl Order<Lane> for Orders {
    fn put(&self, before: &Lane, after: &Lane) -> Result<Ordered> {
        let number = before.given();
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            before.wait_for(number);
            return Ok(Ordered::Waited);
        }
        let before = before.clone();
        after.give(move || before.wait_for(number));
        Ok(Ordered::Queued(None))
    }

    fn wait(&self, before: &Lane, _: Option<&Lane>) -> Result<()> {
        before.wait_for(before.given());
        Ok(())
    }
}

/// Memory that several threads use without a lock.
struct Memory(UnsafeCell<[u64; BYTES]>);

// SAFETY: the ledger orders what conflicts, which is what the tests check.
unsafe impl Sync for Memory {}

impl Memory {
    fn check(&self) {
        // SAFETY: no writer is at work, if the ledger is right.
        let words = unsafe { &*self.0.get() };
        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
    }

    fn step(&self) {
        // SAFETY: no other lane is at work, if the ledger is right.
        let words = unsafe { &mut *self.0.get() };
        words.iter_mut().for_each(|word| *word += 1);
    }
}

/// A view, and what the borrow checker would enforce on its buffer.
struct Borrowed {
    view: Arc<View<Lane>>,
    borrow: RwLock<()>,
}

struct World {
    views: Views<Lane>,
    shown: Vec<Borrowed>,
    lanes: Vec<Lane>,
    orders: Orders,
    memory: Arc<Memory>,
    steps: AtomicUsize,
}

impl World {
    fn new(shown: usize) -> Self {
        let views = Views(sync::Mutex::new(Vec::new()));
        let enter = |_| Borrowed {
            view: views.enter(vec![Span::at(0, BYTES)], false).expect("none is alone"),
            borrow: RwLock::new(()),
        };
        Self {
            shown: (0..shown).map(enter).collect(),
            views,
            lanes: (0..LANES).map(Lane::start).collect(),
            orders: Orders::default(),
            memory: Arc::new(Memory(UnsafeCell::new([0; BYTES]))),
            steps: AtomicUsize::new(0),
        }
    }

    fn give(&self, lane: &Lane, access: Access) {
        let memory = Arc::clone(&self.memory);
        lane.give(move || match access {
            Access::Read => memory.check(),
            Access::Write => memory.step(),
        });
    }

    /// A guard, and work under it. It may outlive others, and be leaked.
    fn round(&self, dice: usize) {
        let Borrowed { view, borrow } = &self.shown[dice % self.shown.len()];
        let lane = &self.lanes[dice / 2 % LANES];
        let access = match dice / 64 % 6 {
            0 => Access::Write,
            _ => Access::Read,
        };
        let claim = Claim {
            access,
            range: &(0..BYTES),
            is_handed_whole: false,
        };
        // Several views of the same bytes are ordered by what was given before a grant.
        let is_alone = self.shown.len() == 1;
        let work = |_: &mut _| {
            if !is_alone {
                self.give(lane, access);
            }
            Ok(())
        };
        let grant = || {
            let granted = self.views.admit(view, &self.orders, lane, claim, work);
            let ((), hold) = granted.expect("no hand-off fails");
            if is_alone {
                self.give(lane, access);
            }
            match dice / 512 % 16 {
                0 => std::mem::forget(hold),
                _ => drop(hold),
            }
        };
        if access == Access::Write {
            let _exclusive = borrow.write().unwrap();
            self.steps.fetch_add(1, Ordering::Relaxed);
            grant();
        } else {
            let _shared = borrow.read().unwrap();
            grant();
        }
    }

    /// Only the lanes' own ends show that the jobs have run.
    fn run(&self) {
        thread::scope(|scope| {
            for own in 0..THREADS {
                scope.spawn(move || {
                    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (own as u64 + 1);
                    for _ in 0..ROUNDS {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        self.round((state >> 20) as usize);
                    }
                });
            }
        });
        for Borrowed { view, .. } in &self.shown {
            view.drain(&self.orders).expect("no lane fails");
        }
        for lane in &self.lanes {
            let done = *lane.0.done.lock().unwrap();
            assert_eq!(done, lane.given(), "a job of lane {} failed", lane.0.number);
        }
        // SAFETY: every user was waited for.
        let words = unsafe { &*self.memory.0.get() };
        assert_eq!(words[0] as usize, self.steps.load(Ordering::Relaxed));
    }
}

#[test]
fn jobs_on_one_view_are_ordered_between_threads() {
    World::new(1).run();
}

#[test]
fn jobs_on_two_views_of_the_same_bytes_are_ordered_between_threads() {
    World::new(2).run();
}
