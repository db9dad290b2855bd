//! A graph made ready: its operations in an order that keeps all waits, dealt out to lanes that run side by side.
//!
//! The first lane is the stream of the launch, the others are helper streams that a launch borrows. An operation stands
//! in the lane of one it waits for, where that is the lane's last; so a chain stays in one lane, and each branch gets
//! another.

use std::sync::Arc;

use super::operation::Operation;
use crate::error::Result;
use crate::stream::{Lanes, Mark, Stream};

/// More branches than this share lanes. Each lane is a thread.
const MOST_LANES: usize = 8;

pub(crate) struct Plan {
    steps: Vec<Step>,
    lanes: usize,
}

struct Step {
    operation: Operation,
    /// The lane, and the steps of other lanes that it waits for.
    lane: usize,
    after: Vec<usize>,
    /// Whether no other step waits for it.
    is_leaf: bool,
}

/// Steps that must be done before a step is, itself included, a bit each.
type Before = Vec<u64>;

fn has(before: &Before, step: usize) -> bool {
    before[step / 64] >> (step % 64) & 1 == 1
}

impl Plan {
    /// Takes operations in an order that keeps all waits, each with the indices of those it waits for.
    pub(super) fn new(steps: Vec<(Operation, Vec<usize>)>) -> Self {
        let mut before: Vec<Before> = Vec::with_capacity(steps.len());
        // The last step of each lane.
        let mut lasts: Vec<usize> = Vec::new();
        let mut waited_for = vec![false; steps.len()];
        let mut planned: Vec<Step> = Vec::with_capacity(steps.len());
        let count = steps.len();
        for (index, (operation, mut after)) in steps.into_iter().enumerate() {
            let mut all: Before = vec![0; count.div_ceil(64)];
            all[index / 64] |= 1 << (index % 64);
            for &step in &after {
                waited_for[step] = true;
                for (all, more) in all.iter_mut().zip(&before[step]) {
                    *all |= more;
                }
            }
            // Behind a step it waits for, or in a lane that is done by then; else in one of its own.
            let direct = lasts.iter().position(|last| after.contains(last));
            let lane = direct.or_else(|| lasts.iter().position(|&last| has(&all, last)));
            let lane = match lane {
                Some(lane) => lane,
                None if lasts.len() < MOST_LANES => {
                    lasts.push(index);
                    lasts.len() - 1
                }
                None => index % MOST_LANES,
            };
            lasts[lane] = index;
            after.retain(|&step| planned[step].lane != lane);
            before.push(all);
            planned.push(Step {
                operation,
                lane,
                after,
                is_leaf: true,
            });
        }
        for (step, waited_for) in planned.iter_mut().zip(waited_for) {
            step.is_leaf = !waited_for;
        }
        Self {
            steps: planned,
            lanes: lasts.len(),
        }
    }

    pub(super) fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.steps.iter().map(|step| &step.operation)
    }

    /// Whether the other plan has the same kinds of operations, with the same waits between them.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let alike = |(now, new): (&Step, &Step)| {
            now.lane == new.lane && now.after == new.after && now.operation.is_alike(&new.operation)
        };
        self.steps.len() == other.steps.len() && self.steps.iter().zip(&other.steps).all(alike)
    }

    /// Queues all of it behind everything in `stream` and behind `after`; the mark says when all is done.
    pub(super) fn submit(&self, call: &'static str, stream: &Arc<Stream>, after: Vec<Mark>) -> Result<Mark> {
        if self.lanes <= 1 {
            return self.submit_chain(call, stream, after);
        }
        let begun = stream.submit(call, after, Box::new(|| Ok(())))?;
        let lanes = Lanes::borrow(stream.device(), self.lanes - 1);
        let mut marks: Vec<Mark> = Vec::with_capacity(self.steps.len());
        let mut used = vec![false; self.lanes];
        for step in &self.steps {
            let mut waits: Vec<Mark> = step.after.iter().map(|&step| marks[step].clone()).collect();
            let lane = match step.lane.checked_sub(1) {
                None => stream,
                Some(helper) => {
                    if !std::mem::replace(&mut used[step.lane], true) {
                        waits.push(begun.clone());
                    }
                    lanes.get(helper)
                }
            };
            marks.push(step.operation.submit(call, lane, waits)?);
        }
        let ends = self.steps.iter().zip(marks);
        let ends = ends.filter(|(step, _)| step.is_leaf && step.lane > 0);
        let ends = ends.map(|(_, mark)| mark).collect();
        // What went wrong in a helper is the stream's to tell.
        stream.submit(call, ends, Box::new(move || lanes.give_back()))
    }

    fn submit_chain(&self, call: &'static str, stream: &Arc<Stream>, mut after: Vec<Mark>) -> Result<Mark> {
        let mut last = None;
        for step in &self.steps {
            let after = std::mem::take(&mut after);
            last = Some(step.operation.submit(call, stream, after)?);
        }
        match last {
            Some(mark) => Ok(mark),
            None => stream.submit(call, after, Box::new(|| Ok(()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(after: &[&[usize]]) -> Vec<usize> {
        let steps = after.iter().map(|after| (Operation::Empty, after.to_vec()));
        let plan = Plan::new(steps.collect());
        plan.steps.iter().map(|step| step.lane).collect()
    }

    #[test]
    fn a_chain_stays_in_one_lane_and_each_branch_has_its_own() {
        assert_eq!(lanes(&[&[], &[0], &[1]]), [0, 0, 0]);
        assert_eq!(lanes(&[&[], &[0], &[0], &[1], &[2], &[3, 4]]), [0, 0, 1, 0, 1, 0]);
        assert_eq!(lanes(&[&[], &[], &[]]), [0, 1, 2]);
    }

    #[test]
    fn a_lane_that_is_done_is_used_again() {
        // Two branches, a join, two branches.
        assert_eq!(lanes(&[&[], &[0], &[0], &[1, 2], &[3], &[3]]), [0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn no_more_lanes_than_allowed_and_every_step_in_one() {
        let many = vec![&[][..]; 3 * MOST_LANES];
        assert_eq!(lanes(&many).iter().max(), Some(&(MOST_LANES - 1)));
    }
}
