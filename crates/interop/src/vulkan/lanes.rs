//! What each stream needs, and no more than is in use.

use std::collections::HashMap;

/// This many are kept whether they are in use or not.
const FEW: usize = 16;

/// By the stream's handle. A lane keeps its stream, so no other one gets the handle; hence streams that their user has
/// dropped have to be found.
pub(super) struct Lanes<L> {
    by_stream: HashMap<usize, L>,
    /// When to look for some that can go.
    sweep: clmgr::Sweep,
}

impl<L> Default for Lanes<L> {
    fn default() -> Self {
        Self {
            by_stream: HashMap::new(),
            sweep: clmgr::Sweep::every(FEW),
        }
    }
}

impl<L> Lanes<L> {
    pub(super) fn take(&mut self, stream: usize) -> Option<L> {
        self.by_stream.remove(&stream)
    }

    pub(super) fn put(&mut self, stream: usize, lane: L) {
        self.by_stream.insert(stream, lane);
    }

    /// Takes out those that are not in use, if there are many.
    pub(super) fn spare(&mut self, is_spare: impl Fn(&L) -> bool) -> Vec<L> {
        if !self.sweep.is_due(self.by_stream.len()) {
            return Vec::new();
        }
        let spare = self
            .by_stream
            .extract_if(|_, lane| is_spare(lane))
            .map(|(_, lane)| lane)
            .collect();
        let left = self.by_stream.len();
        self.sweep.done(left, left);
        spare
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = L> {
        self.by_stream.drain().map(|(_, lane)| lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_streams_that_are_done_do_not_pile_up_and_others_stay() {
        let mut lanes = Lanes::default();
        let mut gone = 0;
        // Every tenth is in use for ever.
        for stream in 0..1000 {
            gone += lanes.spare(|lane: &usize| !lane.is_multiple_of(10)).len();
            lanes.put(stream, stream);
            assert_eq!(lanes.take(stream), Some(stream));
            lanes.put(stream, stream);
        }
        let left: Vec<_> = lanes.drain().collect();
        assert_eq!(left.len() + gone, 1000);
        assert!(left.len() <= 2 * 100 + FEW, "{} lanes", left.len());
        let in_use = left.iter().filter(|lane| lane.is_multiple_of(10));
        assert_eq!(in_use.count(), 100);
    }
}
