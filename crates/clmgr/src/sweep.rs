//! When to look through a list for entries that are over.

/// The length at which to look through a growing list for entries that are over.
///
/// Checking an entry costs a driver call. The list is looked through when as many entries have arrived as were left the
/// last time, so an entry costs a constant number of calls on average and the list stays below twice the entries in
/// use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    due_at: usize,
    least: usize,
}

impl Sweep {
    /// The list is never looked through before `least` entries have arrived.
    #[must_use]
    pub const fn every(least: usize) -> Self {
        Self { due_at: least, least }
    }

    /// Whether a list of `len` entries is to be looked through.
    #[must_use]
    pub const fn is_due(&self, len: usize) -> bool {
        len >= self.due_at
    }

    /// The list was looked through: `left` entries remain. Those checked for the first time are not `known` to be in
    /// use, and do not delay the next look.
    pub fn done(&mut self, left: usize, known: usize) {
        self.due_at = left + known.max(self.least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths at which a list is looked through, of which so many entries stay each time.
    fn looks(mut sweep: Sweep, stay: &[usize]) -> Vec<usize> {
        let mut len = 0;
        let mut looks = Vec::new();
        for &left in stay {
            while !sweep.is_due(len) {
                len += 1;
            }
            looks.push(len);
            len = left;
            sweep.done(left, left);
        }
        looks
    }

    #[test]
    fn a_list_is_looked_through_whenever_it_has_doubled() {
        assert_eq!(looks(Sweep::every(4), &[4, 8, 16, 3, 0, 0]), [4, 8, 16, 32, 7, 4]);
    }

    #[test]
    fn entries_that_were_asked_once_only_do_not_delay_the_next_look() {
        let mut sweep = Sweep::every(4);
        sweep.done(100, 0);
        assert!(!sweep.is_due(103));
        assert!(sweep.is_due(104));
        assert!(sweep.is_due(105));
    }
}
