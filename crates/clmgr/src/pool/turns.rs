//! Who gets which queue, and when. It knows no OpenCL, and its lock is never held for long.

use std::collections::VecDeque;
use std::sync::Arc;

use super::sync::{Condvar, Mutex, wait};

/// At most `cap` things of two kinds, each with one holder at a time.
///
/// A returned thing goes to the longest waiter, so none starves. If that waiter wants the other kind, it may make one
/// in place of the thing.
pub(super) struct Turns<Q> {
    cap: usize,
    state: Mutex<State<Q>>,
}

struct State<Q> {
    /// There are no waiters while one is idle or there are fewer than the cap.
    idle: Vec<(Kind, Q)>,
    /// Those idle, those held, and those that someone has the right to make.
    count: usize,
    waiting: VecDeque<Arc<Waiter<Q>>>,
}

/// Which of the two kinds; the type only has to tell them apart.
pub(super) type Kind = bool;

/// Where a waiter receives what it waits for.
struct Waiter<Q> {
    kind: Kind,
    given: Mutex<Option<Turn<Q>>>,
    arrived: Condvar,
}

/// The result of a turn.
pub(super) enum Turn<Q> {
    /// A thing of the wanted kind.
    Take(Q),
    /// The right to make one, after this idle one of the other kind is dropped. A caller that cannot make it [gives
    /// up](Turns::give_up).
    Make { instead_of: Option<Q> },
}

/// What is where, for reports.
#[derive(Debug)]
pub(super) struct Counts {
    pub cap: usize,
    pub all: usize,
    pub idle: usize,
    pub waiting: usize,
}

impl<Q> Turns<Q> {
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            state: Mutex::new(State {
                idle: Vec::new(),
                count: 0,
                waiting: VecDeque::new(),
            }),
        }
    }

    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            cap: self.cap,
            all: state.count,
            idle: state.idle.len(),
            waiting: state.waiting.len(),
        }
    }

    /// Waits for this caller's turn.
    pub fn next(&self, kind: Kind) -> Turn<Q> {
        let seat = {
            let mut state = self.state.lock();
            if let Some(at) = state.idle.iter().rposition(|(have, _)| *have == kind) {
                return Turn::Take(state.idle.remove(at).1);
            }
            if state.count < self.cap {
                state.count += 1;
                return Turn::Make { instead_of: None };
            }
            // The oldest one of the other kind is the one least wanted.
            if !state.idle.is_empty() {
                let instead_of = Some(state.idle.remove(0).1);
                return Turn::Make { instead_of };
            }
            let seat = Arc::new(Waiter {
                kind,
                given: Mutex::new(None),
                arrived: Condvar::new(),
            });
            state.waiting.push_back(seat.clone());
            seat
        };
        let mut given = seat.given.lock();
        loop {
            match given.take() {
                Some(turn) => return turn,
                None => given = wait(&seat.arrived, given),
            }
        }
    }

    /// Returns a thing.
    pub fn put(&self, kind: Kind, thing: Q) {
        let mut state = self.state.lock();
        match state.waiting.pop_front() {
            Some(seat) if seat.kind == kind => seat.give(Turn::Take(thing)),
            Some(seat) => seat.give(Turn::Make {
                instead_of: Some(thing),
            }),
            None => state.idle.push((kind, thing)),
        }
    }

    /// Returns the right to make one.
    pub fn give_up(&self) {
        let mut state = self.state.lock();
        match state.waiting.pop_front() {
            Some(seat) => seat.give(Turn::Make { instead_of: None }),
            None => state.count -= 1,
        }
    }
}

impl<Q> Waiter<Q> {
    fn give(&self, turn: Turn<Q>) {
        *self.given.lock() = Some(turn);
        self.arrived.notify_one();
    }
}
