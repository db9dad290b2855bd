//! Which numbers of a sequence came, as far back as a window reaches.

/// Numbers that the window remembers.
const WINDOW: u64 = 1 << 16;

/// What is known about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Higher than all before it.
    Newest,
    /// Lower than another, and new.
    Behind,
    /// It came before.
    Again,
    /// Too far behind for the window to tell.
    Unknown,
}

/// The numbers that came.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// A bit for each of the last numbers, at its remainder by the window.
    came: Vec<u64>,
    /// The lowest and the highest.
    span: Option<(u64, u64)>,
    /// How many of this span came.
    distinct: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            came: vec![0; (WINDOW / 64) as usize],
            span: None,
            distinct: 0,
        }
    }
}

impl Sequence {
    /// Notes that a number came.
    pub fn note(&mut self, number: u64) -> Arrival {
        let Some((lowest, highest)) = self.span else {
            self.span = Some((number, number));
            self.distinct = 1;
            self.set(number);
            return Arrival::Newest;
        };
        if number > highest {
            // what leaves the window makes room for what enters it
            if number - highest >= WINDOW {
                self.came.fill(0);
            } else {
                (highest + 1..number).for_each(|skipped| self.clear(skipped));
            }
            self.set(number);
            self.distinct += 1;
            self.span = Some((lowest, number));
            return Arrival::Newest;
        }
        if highest - number >= WINDOW {
            return Arrival::Unknown;
        }
        if self.has(number) {
            return Arrival::Again;
        }
        self.set(number);
        self.distinct += 1;
        self.span = Some((lowest.min(number), highest));
        Arrival::Behind
    }

    /// Numbers of the span that did not come.
    pub fn lost(&self) -> u64 {
        self.span.map_or(0, |(lowest, highest)| {
            (highest - lowest).saturating_sub(self.distinct - 1)
        })
    }

    fn has(&self, number: u64) -> bool {
        let at = number % WINDOW;
        self.came[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, number: u64) {
        let at = number % WINDOW;
        self.came[(at / 64) as usize] |= 1 << (at % 64);
    }

    fn clear(&mut self, number: u64) {
        let at = number % WINDOW;
        self.came[(at / 64) as usize] &= !(1 << (at % 64));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_numbers_are_numbers_like_others() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.note(0), Arrival::Newest);
        assert_eq!(sequence.note(u64::MAX), Arrival::Newest);
        assert_eq!(sequence.note(u64::MAX), Arrival::Again);
        assert_eq!(sequence.note(0), Arrival::Unknown);
        assert_eq!(sequence.note(u64::MAX - 1), Arrival::Behind);
        assert_eq!(sequence.lost(), u64::MAX - 2);
    }

    #[test]
    fn a_number_before_the_first_is_behind_and_closes_no_gap() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.note(100), Arrival::Newest);
        assert_eq!(sequence.note(98), Arrival::Behind);
        assert_eq!(sequence.lost(), 1);
        assert_eq!(sequence.note(99), Arrival::Behind);
        assert_eq!(sequence.lost(), 0);
    }

    #[test]
    fn what_leaves_the_window_makes_room_for_what_enters_it() {
        let mut sequence = Sequence::default();
        for number in [5, 7] {
            assert_eq!(sequence.note(number), Arrival::Newest);
        }
        assert_eq!(sequence.note(WINDOW + 6), Arrival::Newest);
        assert_eq!(sequence.note(7), Arrival::Again);
        assert_eq!(sequence.note(6), Arrival::Unknown);
        // the place of 5 and 7 now belongs to others
        assert_eq!(sequence.note(WINDOW + 5), Arrival::Behind);
        assert_eq!(sequence.note(WINDOW + 8), Arrival::Newest);
        assert_eq!(sequence.note(WINDOW + 7), Arrival::Behind);
        assert_eq!(sequence.note(3 * WINDOW + 8), Arrival::Newest);
        assert_eq!(sequence.note(3 * WINDOW + 6), Arrival::Behind);
    }

    proptest! {
        #[test]
        fn within_the_window_it_knows_what_a_set_knows(
            start in prop_oneof![Just(0), Just(u64::MAX - 3000), any::<u32>().prop_map(u64::from)],
            steps in prop::collection::vec(0..3000u64, 1..400),
        ) {
            let (mut sequence, mut set) = (Sequence::default(), HashSet::new());
            let mut highest = None;
            for step in steps {
                let number = start + step;
                let expected = match (set.insert(number), highest) {
                    (false, _) => Arrival::Again,
                    (true, Some(highest)) if number < highest => Arrival::Behind,
                    (true, _) => Arrival::Newest,
                };
                prop_assert_eq!(sequence.note(number), expected);
                highest = highest.max(Some(number));
            }
            let lowest = set.iter().copied().min().unwrap_or_default();
            let span = highest.unwrap_or_default() - lowest + 1;
            prop_assert_eq!(sequence.lost(), span - set.len() as u64);
        }
    }
}
