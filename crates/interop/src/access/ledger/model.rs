//! Checks the ledger against an oracle that knows the true order: random grants, guards that live across
//! other grants, leaked guards, parts, failures and time-outs, without a device.
//!
//! `HIPCL_MODEL_OPERATIONS=1000000 cargo test -p hipcl-interop --lib ledger::model` sets the number of
//! operations, and `HIPCL_MODEL_SEED` the seed.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::{AccessLedger, Claim, Hold, Order, Worker};
use crate::access::sides::Sides;
use crate::access::{Ordered, Outcome};
use crate::values::{Access, Side};
use crate::{Error, Result};

const WORKERS: usize = 12;
const BYTES: usize = 12;
const GUARDS: usize = 6;

/// How many pieces of each worker's work come before something.
type Clock = [usize; WORKERS];

fn join(into: &mut Clock, other: &Clock) {
    for (into, other) in into.iter_mut().zip(other) {
        *into = (*into).max(*other);
    }
}

/// Pseudo-random numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }

    /// True with a probability of one in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }
}

/// The true state of the workers, independent of the ledger.
struct World {
    dice: Dice,
    /// How much work each worker received.
    given: Clock,
    /// What comes before each worker's next piece of work.
    before: [Clock; WORKERS],
    /// What is known to have ended.
    ended: Clock,
    /// The last piece of work of each worker that touched a byte, counted from 1: to read it, to write it.
    touched: [[[usize; 2]; WORKERS]; BYTES],
    /// The last wait for another worker that each received, counted as work.
    waits: Clock,
    /// Hand-offs that failed or will fail, until every worker has been waited for.
    failing: Vec<Arc<Outcome>>,
    pending: Vec<(Arc<Outcome>, bool)>,
    ways: Ways,
}

/// How hand-offs behave.
#[derive(Clone, Copy)]
struct Ways {
    /// One in this many hand-offs is a wait; 1 for all.
    waits: usize,
    /// One in this many hand-offs between APIs fails once it is queued.
    fails: usize,
    /// One in this many calls is refused.
    refuses: usize,
    is_handed_whole: bool,
}

impl World {
    /// What comes after a worker once its work so far has been waited for.
    fn reach(&self, worker: usize) -> Clock {
        let mut reach = self.before[worker];
        reach[worker] = self.given[worker];
        reach
    }

    fn refused(&mut self) -> Result<()> {
        match self.dice.once_in(self.ways.refuses) {
            true => Err(Error::Empty),
            false => Ok(()),
        }
    }

    fn waited(&mut self, worker: usize) {
        let reach = self.reach(worker);
        join(&mut self.ended, &reach);
    }

    fn put(&mut self, before: usize, after: usize) -> Result<Ordered> {
        assert_ne!(before, after, "a worker waits for itself");
        self.refused()?;
        if self.dice.once_in(self.ways.waits) {
            self.waited(before);
            return Ok(Ordered::Waited);
        }
        self.given[after] += 1;
        self.waits[after] = self.given[after];
        let within_an_api = is_stream(before) == is_stream(after);
        let outcome = (!within_an_api).then(Arc::<Outcome>::default);
        if let Some(outcome) = &outcome {
            let fails = self.dice.once_in(self.ways.fails);
            self.pending.push((Arc::clone(outcome), fails));
            if fails {
                self.failing.push(Arc::clone(outcome));
                return Ok(Ordered::Queued(Some(Arc::clone(outcome))));
            }
        }
        let reach = self.reach(before);
        join(&mut self.before[after], &reach);
        Ok(Ordered::Queued(outcome))
    }

    /// Some outcomes become known.
    fn tell(&mut self) {
        let mut place = 0;
        while place < self.pending.len() {
            if !self.dice.once_in(3) {
                place += 1;
                continue;
            }
            let (outcome, fails) = self.pending.swap_remove(place);
            outcome.told(match fails {
                true => Err(Error::ReadOnly),
                false => Ok(()),
            });
        }
    }

    /// Gives the worker work on these bytes, under a guard.
    fn launch(&mut self, worker: usize, access: Access, range: &Range<usize>) {
        self.given[worker] += 1;
        let mut before = self.before[worker];
        join(&mut before, &self.ended);
        for byte in range.clone() {
            for other in (0..WORKERS).filter(|other| *other != worker) {
                let [read, written] = self.touched[byte][other];
                let last = match access {
                    Access::Read => written,
                    Access::Write => written.max(read),
                };
                assert!(
                    last <= before[other] || !self.failing.is_empty(),
                    "{access:?} of byte {byte} by {worker}: comes after {} of {last} of {other}",
                    before[other]
                );
            }
            let kind = usize::from(access == Access::Write);
            self.touched[byte][worker][kind] = self.given[worker];
        }
    }

    /// Every worker that ever touched a byte, or was to wait for one that did, has been waited for.
    fn assert_all_ended(&self) {
        for (worker, wait) in self.waits.iter().enumerate() {
            let ended = self.ended[worker];
            assert!(*wait <= ended, "{worker} waits: {wait} of {ended}");
        }
        for (byte, workers) in self.touched.iter().enumerate() {
            for (worker, [read, written]) in workers.iter().enumerate() {
                let last = *read.max(written);
                assert!(
                    last <= self.ended[worker],
                    "{worker} is at work on byte {byte}: {last} of {}",
                    self.ended[worker]
                );
            }
        }
    }
}

#[derive(Clone)]
struct Number {
    worker: usize,
    world: Rc<RefCell<World>>,
}

/// Even numbers are queues.
fn is_stream(worker: usize) -> bool {
    worker % 2 == 1
}

impl Worker for Number {
    type Mark = Clock;

    fn is_same(&self, other: &Self) -> bool {
        self.worker == other.worker
    }

    fn shares_api(&self, other: &Self) -> bool {
        is_stream(self.worker) == is_stream(other.worker)
    }

    fn orders_any_memory(&self) -> bool {
        is_stream(self.worker)
    }

    fn may_read_more(&self, held: bool) -> bool {
        is_stream(self.worker) || held
    }

    fn has_ended(&self, mark: &mut Option<Clock>) -> Result<bool> {
        let mut world = self.world.borrow_mut();
        world.refused()?;
        let now = world.reach(self.worker);
        let marked = *mark.get_or_insert(now);
        let ended = world.dice.once_in(2);
        if ended {
            join(&mut world.ended, &marked);
        }
        Ok(ended)
    }
}

struct Ordering(Rc<RefCell<World>>);

impl Order<Number> for Ordering {
    fn put(&self, before: &Number, after: &Number) -> Result<Ordered> {
        self.0.borrow_mut().put(before.worker, after.worker)
    }

    fn wait(&self, before: &Number, _: Option<&Number>) -> Result<()> {
        let mut world = self.0.borrow_mut();
        world.refused()?;
        world.waited(before.worker);
        Ok(())
    }
}

/// Access that was granted and has not ended.
struct Guard {
    worker: usize,
    access: Access,
    range: Range<usize>,
    hold: Hold,
}

struct Model {
    world: Rc<RefCell<World>>,
    order: Ordering,
    uses: AccessLedger<Number>,
    sides: Sides,
    guards: Vec<Guard>,
    granted: usize,
    told: usize,
}

impl Model {
    fn new(seed: u64, ways: Ways) -> Self {
        let world = Rc::new(RefCell::new(World {
            dice: Dice(seed | 1),
            given: [0; WORKERS],
            before: [[0; WORKERS]; WORKERS],
            ended: [0; WORKERS],
            touched: [[[0; 2]; WORKERS]; BYTES],
            waits: [0; WORKERS],
            failing: Vec::new(),
            pending: Vec::new(),
            ways,
        }));
        // Few, so that stretches are often merged and rechecked.
        let uses = AccessLedger::keeping(2, 8);
        Self {
            order: Ordering(Rc::clone(&world)),
            world,
            uses,
            sides: Sides::default(),
            guards: Vec::new(),
            granted: 0,
            told: 0,
        }
    }

    fn roll(&self, sides: usize) -> usize {
        self.world.borrow_mut().dice.roll(sides)
    }

    fn step(&mut self) {
        match self.roll(16) {
            0..6 => self.claim(),
            6..12 => self.launch(),
            12..14 => self.end(),
            14 => self.world.borrow_mut().tell(),
            _ => self.exclusively(),
        }
    }

    fn some_range(&self) -> Range<usize> {
        if self.roll(3) == 0 {
            return 0..BYTES;
        }
        let start = self.roll(BYTES);
        start..start + 1 + self.roll(BYTES - start)
    }

    /// Asks for access, within what the borrow checker would allow.
    fn claim(&mut self) {
        let access = [Access::Read, Access::Read, Access::Write][self.roll(3)];
        let (worker, range) = (self.roll(WORKERS), self.some_range());
        let meets = |guard: &Guard| guard.range.start < range.end && range.start < guard.range.end;
        let excludes = |guard: &Guard| access == Access::Write || guard.access == Access::Write;
        if self.guards.len() == GUARDS || self.guards.iter().any(|g| meets(g) && excludes(g)) {
            return;
        }
        let is_handed_whole = self.world.borrow().ways.is_handed_whole;
        let side = match is_stream(worker) {
            true => Side::Hip,
            false => Side::Cl,
        };
        if is_handed_whole && self.sides.take(side, access, &range).is_err() {
            return;
        }
        let claim = Claim {
            access,
            range: &range,
            is_handed_whole,
        };
        match self.uses.admit(&self.order, &self.number(worker), claim) {
            Ok(hold) => self.guards.push(Guard {
                worker,
                access,
                range,
                hold,
            }),
            Err(_) => return,
        }
        self.granted += 1;
        // A user admitted after a reported failure comes after every other user.
        let mut world = self.world.borrow_mut();
        let failing = world.failing.len();
        world.failing.retain(|outcome| !outcome.is_told());
        if world.failing.len() < failing {
            self.told += failing - world.failing.len();
            world.assert_all_ended();
        }
    }

    fn number(&self, worker: usize) -> Number {
        Number {
            worker,
            world: Rc::clone(&self.world),
        }
    }

    fn launch(&mut self) {
        if self.guards.is_empty() {
            return;
        }
        let guard = &self.guards[self.roll(self.guards.len())];
        let mut world = self.world.borrow_mut();
        world.launch(guard.worker, guard.access, &guard.range);
    }

    /// Drops or leaks a guard: the ledger does not see a guard that is leaked.
    fn end(&mut self) {
        if !self.guards.is_empty() {
            let place = self.roll(self.guards.len());
            self.end_of(place);
        }
    }

    fn end_of(&mut self, place: usize) {
        let Guard { hold, .. } = self.guards.swap_remove(place);
        match self.roll(4) {
            0 => std::mem::forget(hold),
            _ => drop(hold),
        }
    }

    /// The buffer is borrowed as a whole, or freed, and no guard is alive.
    fn exclusively(&mut self) {
        if !self.guards.is_empty() && self.roll(4) > 0 {
            return;
        }
        while !self.guards.is_empty() {
            self.end_of(0);
        }
        self.sides = Sides::default();
        if self.roll(4) == 0 && self.uses.drain(&self.order).is_ok() {
            self.world.borrow().assert_all_ended();
        }
    }
}

fn operations() -> usize {
    let asked = std::env::var("HIPCL_MODEL_OPERATIONS").ok();
    asked.map_or(60_000, |asked| asked.parse().expect("a number"))
}

fn seed() -> u64 {
    let asked = std::env::var("HIPCL_MODEL_SEED").ok();
    asked.map_or(0x9E37_79B9, |asked| asked.parse().expect("a number"))
}

/// Runs this many operations, on one buffer after another.
fn run(ways: Ways) {
    let (operations, mut granted, mut told) = (operations(), 0, 0);
    let buffers = operations.div_ceil(2000) as u64;
    for buffer in 0..buffers {
        let seed = (seed() + buffer).wrapping_mul(0x2545_F491_4F6C_DD1D);
        let mut model = Model::new(seed, ways);
        for _ in 0..operations.div_ceil(buffers as usize) {
            model.step();
        }
        granted += model.granted;
        told += model.told;
    }
    assert!(granted > operations / 16, "only {granted} were let in");
    // A few thousand operations, as under Miri, may meet none.
    if operations >= 20_000 || told > 0 {
        assert_eq!(told > 0, ways.fails < usize::MAX, "{told} failures");
    }
}

const BY_WAITING: Ways = Ways {
    waits: 1,
    fails: usize::MAX,
    refuses: 40,
    is_handed_whole: false,
};
const BY_THE_DRIVERS: Ways = Ways {
    waits: usize::MAX,
    fails: 60,
    refuses: 60,
    is_handed_whole: false,
};

#[test]
fn work_is_ordered_when_the_host_waits() {
    run(BY_WAITING);
}

#[test]
fn work_is_ordered_when_the_drivers_hand_over() {
    run(BY_THE_DRIVERS);
}

#[test]
fn work_is_ordered_when_some_hand_overs_are_waited_for() {
    run(Ways {
        waits: 3,
        ..BY_THE_DRIVERS
    });
}

#[test]
fn work_is_ordered_on_memory_that_is_handed_over_as_a_whole() {
    for ways in [BY_WAITING, BY_THE_DRIVERS] {
        run(Ways {
            is_handed_whole: true,
            ..ways
        });
    }
}
