//! Random programs compared with the same program run in sequence on a plain array.
//!
//! `HIPCL_MODEL_OPERATIONS=1000000 cargo test -p hipcl-interop --test ledger model` sets the number of
//! operations for each grade, and `HIPCL_MODEL_SEED` the seed.

use std::mem::forget;
use std::time::{Duration, Instant};

use interop::{ClGuard, ClGuardMut, Error, Grade, HipGuard, HipGuardMut, PartMut, Route, Shared};

use crate::{GRAIN, GRAINS, LEN, Rig, Sum, common, hold, model_cl, model_hip};

/// Pseudo-random numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    fn word(&mut self) -> u32 {
        self.roll(1 << 30) as u32
    }

    /// Some elements, at the granularity of parts.
    fn range(&mut self) -> std::ops::Range<usize> {
        let start = self.roll(GRAINS);
        let end = start + 1 + self.roll(GRAINS - start);
        start * GRAIN..end * GRAIN
    }
}

/// Access that was granted, and its user.
enum Guard<'a> {
    Cl(ClGuard<'a, u32>, &'a clmgr::Queue),
    ClMut(ClGuardMut<'a, u32>, &'a clmgr::Queue),
    Hip(HipGuard<'a, u32>, &'a hip::Stream),
    HipMut(HipGuardMut<'a, u32>, &'a hip::Stream),
}

struct Held<'a> {
    guard: Guard<'a>,
    range: std::ops::Range<usize>,
}

impl Held<'_> {
    fn end(self, dice: &mut Dice) {
        match dice.once_in(3) {
            true => forget(self),
            false => drop(self),
        }
    }
}

/// Keeps the stream busy at times, so that later work overtakes it if it can.
fn delay(dice: &mut Dice, stream: &hip::Stream) {
    if dice.once_in(8) {
        let busy = || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(300) {
                std::thread::yield_now();
            }
        };
        stream.host_function(busy).expect("a host function");
    }
}

struct Program<'r> {
    rig: &'r Rig,
    dice: Dice,
    /// The buffer's contents once all work is done.
    words: Vec<u32>,
    /// The sums that kernels compute, and the expected sums.
    sums: Vec<(Sum, u32)>,
    operations: usize,
    given_up: usize,
}

impl<'r> Program<'r> {
    /// A reader's guard of the whole buffer.
    fn reader<'a>(&mut self, shared: &'a Shared<u32>) -> interop::Result<Held<'a>>
    where
        'r: 'a,
    {
        let rig = self.rig;
        let user = self.dice.roll(3);
        self.operations += 1;
        let guard = match self.dice.once_in(2) {
            true => Guard::Cl(shared.cl(&rig.queues[user])?, &rig.queues[user]),
            false => Guard::Hip(shared.hip(&rig.streams[user])?, &rig.streams[user]),
        };
        Ok(Held { guard, range: 0..LEN })
    }

    fn writer<'a>(&mut self, part: &'a mut PartMut<'_, u32>) -> interop::Result<Held<'a>>
    where
        'r: 'a,
    {
        let rig = self.rig;
        let user = self.dice.roll(3);
        let range = part.range();
        self.operations += 1;
        let guard = match self.dice.roll(4) {
            0 => Guard::Cl(part.cl(&rig.queues[user])?, &rig.queues[user]),
            1 => Guard::Hip(part.hip(&rig.streams[user])?, &rig.streams[user]),
            2 => Guard::ClMut(part.cl_mut(&rig.queues[user])?, &rig.queues[user]),
            _ => Guard::HipMut(part.hip_mut(&rig.streams[user])?, &rig.streams[user]),
        };
        Ok(Held { guard, range })
    }

    /// Some work under a guard, however long ago it was granted.
    fn launch(&mut self, held: &mut Held<'_>) {
        let (rig, k) = (self.rig, self.dice.word());
        self.operations += 1;
        let words = &mut self.words[held.range.clone()];
        let len = words.len();
        match &mut held.guard {
            Guard::ClMut(guard, queue) => {
                rig.cl_step(queue, guard.arg(), len, k);
                model_cl(words, k);
                return;
            }
            Guard::HipMut(guard, stream) => {
                delay(&mut self.dice, stream);
                rig.hip_step(stream, guard.slice_mut(), k);
                model_hip(words, k);
                return;
            }
            _ => {}
        }
        let total = words.iter().fold(0_u32, |sum, word| sum.wrapping_add(*word));
        let sum = match &held.guard {
            Guard::Cl(guard, queue) => rig.cl_sum(queue, guard.arg(), len),
            Guard::Hip(guard, stream) => {
                delay(&mut self.dice, stream);
                rig.hip_sum(stream, guard.slice())
            }
            _ => unreachable!("writers are done above"),
        };
        self.sums.push((sum, total));
    }

    /// Readers come and go, and work under any live guard.
    fn readers(&mut self, shared: &Shared<u32>) -> interop::Result<()> {
        let mut held = vec![self.reader(shared)?];
        for _ in 0..self.dice.roll(12) {
            match self.dice.roll(4) {
                0 if held.len() < 6 => held.push(self.reader(shared)?),
                1 if held.len() > 1 => {
                    let place = self.dice.roll(held.len());
                    held.swap_remove(place).end(&mut self.dice);
                }
                _ => {
                    let place = self.dice.roll(held.len());
                    self.launch(&mut held[place]);
                }
            }
        }
        held.into_iter().for_each(|held| held.end(&mut self.dice));
        Ok(())
    }

    /// Parts are granted in any order, and used in any order while all guards live.
    fn parts(&mut self, shared: &mut Shared<u32>) -> interop::Result<()> {
        let mut ends = [(); 2].map(|()| 1 + self.dice.roll(GRAINS - 1));
        ends.sort_unstable();
        let [first, second] = ends.map(|end| end * GRAIN);
        let mut parts = match first == second {
            true => Vec::from(shared.parts_mut([0..first, first..LEN])?),
            false => Vec::from(shared.parts_mut([0..first, first..second, second..LEN])?),
        };
        for _ in 0..2 {
            let turn = self.dice.roll(parts.len());
            parts.rotate_left(turn);
            let mut held = Vec::new();
            for part in &mut parts {
                held.push(self.writer(part)?);
                let place = self.dice.roll(held.len());
                self.launch(&mut held[place]);
            }
            for _ in 0..self.dice.roll(4) {
                let place = self.dice.roll(held.len());
                self.launch(&mut held[place]);
            }
            held.into_iter().for_each(|held| held.end(&mut self.dice));
        }
        Ok(())
    }

    /// One writer of the whole buffer, or of the only granted part.
    fn whole(&mut self, shared: &mut Shared<u32>) -> interop::Result<()> {
        let range = match self.dice.once_in(2) {
            true => 0..LEN,
            false => self.dice.range(),
        };
        let mut part = shared.part_mut(range)?;
        let mut held = self.writer(&mut part)?;
        for _ in 0..=self.dice.roll(2) {
            self.launch(&mut held);
        }
        held.end(&mut self.dice);
        Ok(())
    }

    fn step(&mut self, shared: &mut Shared<u32>) -> interop::Result<()> {
        match self.dice.roll(6) {
            0 | 1 => self.whole(shared),
            2 => self.parts(shared),
            _ => self.readers(shared),
        }
    }

    fn fill(&mut self, shared: &mut Shared<u32>) -> interop::Result<()> {
        let seed = self.dice.word();
        self.words = (0..LEN as u32).map(|i| i.wrapping_mul(seed)).collect();
        self.operations += 1;
        shared.upload(&self.words)
    }

    fn check(&mut self, shared: &Shared<u32>) -> interop::Result<()> {
        let sums = self.sums.drain(..);
        let sums: Vec<_> = sums.map(|(sum, expected)| (sum.read(), expected)).collect();
        // Last, because it tells whether a hand-off was given up.
        let mut found = vec![0; LEN];
        shared.download(&mut found)?;
        assert!(found == self.words, "after {} operations", self.operations);
        for (sum, expected) in sums {
            assert_eq!(sum, expected, "{} after {} operations", shared.route(), self.operations);
        }
        Ok(())
    }

    /// The life of one buffer.
    fn buffer(&mut self, route: Route) {
        let mut shared = self.rig.bridge.alloc_on(route, LEN).expect("memory");
        self.fill(&mut shared).expect("an upload");
        for _ in 0..12 {
            for _ in 0..4 {
                self.step(&mut shared).expect("access");
            }
            self.check(&shared).expect("a download");
        }
        // The last work ends before the memory is freed.
        self.step(&mut shared).expect("access");
        drop(shared);
        for (sum, expected) in self.sums.drain(..) {
            assert_eq!(sum.read(), expected, "after {} operations", self.operations);
        }
    }

    /// Like [`buffer`](Self::buffer), but sometimes a queue or a stream does not end in time. Then every user is
    /// waited for, and what they did meanwhile is discarded.
    fn buffer_with_failures(&mut self, route: Route) {
        let rig = self.rig;
        let mut shared = rig.bridge.alloc_on(route, LEN).expect("memory");
        self.fill(&mut shared).expect("an upload");
        for _ in 0..3 {
            let (queue, stream) = (self.dice.roll(3), self.dice.roll(3));
            let (queue, stream) = (&rig.queues[queue], &rig.streams[stream]);
            let late = clmgr::UserEvent::new(rig.bridge.cl_context()).expect("a user event");
            let is_cl = self.dice.once_in(2);
            let held = match is_cl {
                true => {
                    queue.wait_for(late.event()).expect("a wait");
                    drop(shared.cl_mut(queue));
                    None
                }
                false => {
                    drop(shared.hip_mut(stream));
                    Some(hold(stream))
                }
            };
            let outcome = (0..2).try_for_each(|_| self.step(&mut shared)).and_then(|()| {
                // Until it is released.
                match is_cl {
                    true => {
                        drop(shared.hip_mut(stream)?);
                        let _ = stream.synchronize();
                    }
                    false => {
                        drop(shared.cl_mut(queue)?);
                        let _ = queue.finish();
                    }
                }
                shared.hip(stream).map(drop)
            });
            late.complete().expect("a user event");
            drop(held);
            self.note(outcome);
            self.heal(&mut shared);
            let outcome = (0..4)
                .try_for_each(|_| self.step(&mut shared))
                .and_then(|()| self.check(&shared));
            // A busy machine may exceed the limit, too.
            if self.note(outcome) {
                self.heal(&mut shared);
            }
        }
    }

    /// Whether a hand-off was given up.
    fn note(&mut self, outcome: interop::Result<()>) -> bool {
        match outcome {
            Ok(()) => return false,
            Err(Error::HandoffTimeout { .. } | Error::HandoffFailed { .. }) => self.given_up += 1,
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// Waits until no work that was given up is running, and fills the buffer again.
    fn heal(&mut self, shared: &mut Shared<u32>) {
        let rig = self.rig;
        loop {
            // The driver chooses whether a queue whose wait failed runs or fails.
            rig.queues.iter().for_each(|queue| drop(queue.finish()));
            let streams = rig.streams.iter();
            streams.for_each(|stream| stream.synchronize().expect("a stream"));
            match self.fill(shared) {
                Ok(()) => break,
                Err(Error::HandoffTimeout { .. } | Error::HandoffFailed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        self.sums.clear();
    }
}

fn operations(usually: usize) -> usize {
    let asked = std::env::var("HIPCL_MODEL_OPERATIONS").ok();
    asked.map_or(usually, |asked| asked.parse().expect("a number"))
}

fn seed() -> u64 {
    let asked = std::env::var("HIPCL_MODEL_SEED").ok();
    asked.map_or(0x51ED_2701, |asked| asked.parse().expect("a number"))
}

fn run(grade: Grade) {
    if !common::grades().contains(&grade) {
        return common::skipped("the grade is not proven here");
    }
    let rig = Rig::open(grade, Duration::from_secs(60));
    let routes: Vec<Route> = rig.bridge.report().working().collect();
    let divisible = routes.iter().filter(|route| **route != Route::ExternalFd);
    let mut program = program(&rig);
    for route in divisible.cycle() {
        if program.operations >= operations(2000) {
            break;
        }
        program.buffer(*route);
    }
    assert!(rig.bridge.take_deferred_errors().is_empty());
}

fn program(rig: &Rig) -> Program<'_> {
    Program {
        rig,
        dice: Dice(seed() | 1),
        words: Vec::new(),
        sums: Vec::new(),
        operations: 0,
        given_up: 0,
    }
}

#[test]
fn random_programs_are_ordered_by_the_host() {
    run(Grade::Host);
}

#[test]
fn random_programs_are_ordered_by_callbacks() {
    run(Grade::Callback);
}

#[test]
fn random_programs_are_ordered_by_the_device() {
    run(Grade::Device);
}

#[test]
fn random_programs_are_ordered_again_after_work_that_does_not_end() {
    if !common::on_host_or_skip("a queue is held behind a user event") {
        return;
    }
    for &grade in common::grades() {
        let rig = Rig::open(grade, Duration::from_millis(200));
        let mut program = program(&rig);
        while program.operations < operations(1000) / 10 {
            program.buffer_with_failures(Route::SvmCoarse);
        }
        assert!(program.given_up > 0, "{grade}: everyone ended in time");
        drop(rig.bridge.take_deferred_errors());
    }
}
