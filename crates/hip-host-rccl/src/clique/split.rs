//! The ranks divided by color into cliques of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{Clique, State, absent, never_comes};
use crate::limit::time_limit;
use crate::meeting::Wish;
use crate::status::{Failure, Outcome};

/// Where one rank goes, and its number there; `None` without a color.
pub(crate) type Part = Option<(Arc<Clique>, usize)>;

/// One split, until each rank has its part.
pub(super) struct Split {
    asked: Vec<Option<Asked>>,
    /// Once all have asked.
    parts: Option<Vec<Part>>,
    taken: usize,
}

#[derive(Clone, Copy)]
struct Asked {
    wish: Wish,
    /// Whether the rank is one of this process.
    here: bool,
}

impl Split {
    fn new(ranks: usize) -> Self {
        Self {
            asked: vec![None; ranks],
            parts: None,
            taken: 0,
        }
    }

    pub(super) fn waits_for(&self, rank: usize) -> bool {
        self.parts.is_none() && self.asked[rank].is_none()
    }

    /// By color, each in the order of the keys and then of the ranks.
    fn divide(&self, devices: &[Option<i32>]) -> Vec<Part> {
        let mut colors: BTreeMap<i32, Vec<(i32, usize, bool)>> = BTreeMap::new();
        for (rank, asked) in self.asked.iter().enumerate() {
            if let Some(Asked { wish, here }) = asked
                && let Some(color) = wish.color
            {
                colors.entry(color).or_default().push((wish.key, rank, *here));
            }
        }
        let mut parts: Vec<Part> = vec![None; self.asked.len()];
        for mut members in colors.into_values() {
            members.sort_unstable();
            let clique = Clique::new(members.len());
            let mut state = clique.state.lock();
            state.joined = members.iter().map(|(_, rank, _)| devices[*rank]).collect();
            state.here = members.iter().filter(|(_, _, here)| *here).count();
            drop(state);
            for (number, (_, rank, _)) in members.into_iter().enumerate() {
                parts[rank] = Some((clique.clone(), number));
            }
        }
        parts
    }
}

impl Clique {
    /// What `rank` wishes in its split of this number. [`take_part`](Self::take_part) has to follow.
    pub(crate) fn ask_part(&self, rank: usize, number: u64, wish: Wish, here: bool) -> Outcome {
        let mut state = self.state.lock();
        state.check()?;
        let State {
            splits,
            joined,
            members,
            ..
        } = &mut *state;
        let split = splits.entry(number).or_insert_with(|| Split::new(self.ranks));
        if split.asked[rank].is_some() {
            let text = format!("ncclCommSplit: rank {rank} makes split {number} twice");
            self.fail(&mut state, Failure::usage(text));
            return state.check();
        }
        split.asked[rank] = Some(Asked { wish, here });
        let gone = (0..self.ranks).find(|&rank| split.asked[rank].is_none() && members[rank].gone);
        if split.asked.iter().all(Option::is_some) {
            split.parts = Some(split.divide(joined));
            self.changed.notify_all();
        } else if let Some(gone) = gone {
            self.fail(&mut state, never_comes(&describe(number), gone));
        }
        state.check()
    }

    /// Waits for all ranks' wishes; at the time limit the communicator fails.
    pub(crate) fn take_part(&self, rank: usize, number: u64) -> Outcome<Part> {
        let deadline = Instant::now().checked_add(time_limit());
        let mut state = self.state.lock();
        loop {
            if let Some(split) = state.splits.get_mut(&number)
                && let Some(parts) = &mut split.parts
            {
                let part = parts[rank].take();
                split.taken += 1;
                if split.taken == self.ranks {
                    state.splits.remove(&number);
                }
                return Ok(part);
            }
            state.check()?;
            if self.wait_until(&mut state, deadline) {
                let split = state.splits.get(&number);
                let there = (0..self.ranks).map(|rank| split.is_some_and(|split| split.asked[rank].is_some()));
                let absent = absent(there);
                if absent.is_empty() {
                    continue;
                }
                let text = format!(
                    "{}: ranks {absent:?} of {} did not come within the time limit",
                    describe(number),
                    self.ranks
                );
                self.fail(&mut state, Failure::remote(text));
            }
        }
    }
}

pub(super) fn describe(number: u64) -> String {
    format!("split {number}, ncclCommSplit")
}
