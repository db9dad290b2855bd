//! What is known about each stretch of some bytes.

use std::ops::Range;

/// Every byte has a state; neighbours of one state are one stretch.
pub(super) struct Stretches<S> {
    /// In order, without gaps, none empty.
    list: Vec<(Range<usize>, S)>,
}

impl<S: Copy + PartialEq> Stretches<S> {
    pub(super) fn new(bytes: usize, state: S) -> Self {
        Self {
            list: vec![(0..bytes, state)],
        }
    }

    /// The stretches in `range`, cut off at its ends.
    pub(super) fn within(&self, range: &Range<usize>) -> Vec<(Range<usize>, S)> {
        let cut = |(stretch, state): &(Range<usize>, S)| {
            let inside = stretch.start.max(range.start)..stretch.end.min(range.end);
            (!inside.is_empty()).then_some((inside, *state))
        };
        self.list.iter().filter_map(cut).collect()
    }

    /// From now on the bytes of `range`, which lies in the whole, are in this state.
    pub(super) fn set(&mut self, range: &Range<usize>, state: S) {
        if range.is_empty() {
            return;
        }
        let end = self.list.last().map_or(0, |(last, _)| last.end);
        let mut list = self.within(&(0..range.start));
        list.push((range.clone(), state));
        list.extend(self.within(&(range.end..end)));
        list.dedup_by(|next, before| {
            let is_one = next.1 == before.1;
            if is_one {
                before.0.end = next.0.end;
            }
            is_one
        });
        self.list = list;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_is_in_the_state_that_was_set_last(
            sets in prop::collection::vec((0_usize..40, 0_usize..40, 0_u8..3), 0..12),
            (a, b) in (0_usize..40, 0_usize..40),
        ) {
            let (mut stretches, mut model) = (Stretches::new(40, 0_u8), [0_u8; 40]);
            for (one, other, state) in sets {
                let range = one.min(other)..one.max(other);
                stretches.set(&range, state);
                model[range].fill(state);
            }
            let range = a.min(b)..a.max(b);
            let mut next = range.start;
            let mut last = None;
            for (stretch, state) in stretches.within(&range) {
                prop_assert_eq!(stretch.start, next);
                prop_assert!(last != Some(state), "neighbours of one state are one");
                prop_assert!(model[stretch.clone()].iter().all(|byte| *byte == state));
                (next, last) = (stretch.end, Some(state));
            }
            prop_assert_eq!(next, range.end);
        }
    }
}
