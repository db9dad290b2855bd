//! Where the data is between the kernels of a transform.

use crate::way::Way;

/// Where the data is between two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Data,
    Out,
    First,
    Second,
}

/// The places before the first kernel and after each one.
pub(crate) struct Route {
    pub places: Vec<Place>,
    pub scratches: usize,
}

impl Route {
    /// A kernel of the passes, or the first step of a split, never writes where it reads, unless it is the only one; the
    /// second step of a split works in place. Between two stages the data is in another order, in which the second one
    /// must not write. `through_out`: the output may hold what the kernels hand on.
    pub fn of(way: Way, kernels: usize, in_place: bool, through_out: bool) -> Self {
        let mut places = vec![Place::Data];
        match way {
            Way::Split { .. } if !in_place && through_out => places.extend([Place::Out, Place::Out]),
            // Back from the last place, out and scratch take turns.
            _ if through_out => places.extend((0..kernels).map(|index| match kernels - 1 - index {
                0 => Place::Out,
                left if left % 2 == 1 => Place::First,
                // The first place must not be the data: of an odd number one goes to a second scratch.
                _ if index == 0 && in_place => Place::Second,
                _ => Place::Out,
            })),
            _ => places.extend((0..kernels).map(|index| match kernels - 1 - index {
                0 => Place::Out,
                left if left % 2 == 1 => Place::First,
                _ => Place::Second,
            })),
        }
        let scratches = if places.contains(&Place::Second) {
            2
        } else {
            usize::from(places.contains(&Place::First))
        };
        Self { places, scratches }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pass_writes_where_it_reads_and_the_last_writes_to_out() {
        for (kernels, in_place, through_out) in (1..9).flat_map(|kernels| {
            [(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| (kernels, a, b))
        }) {
            let route = Route::of(Way::Passes, kernels, in_place, through_out);
            assert_eq!(route.places.len(), kernels + 1);
            assert_eq!(route.places[kernels], Place::Out);
            assert!(through_out || !route.places[..kernels].contains(&Place::Out));
            for pair in route.places.windows(2) {
                let same = pair[0] == pair[1] || (in_place && pair == [Place::Data, Place::Out]);
                assert!(!same || kernels == 1, "{kernels} kernels: {:?}", route.places);
            }
        }
    }

    #[test]
    fn steps_that_hand_on_a_matrix_end_in_out() {
        let split = Way::Split { height: 8, width: 8 };
        let stages = Way::Stages { height: 8, width: 8 };
        let places = |way, in_place, through_out| Route::of(way, 2, in_place, through_out).places;
        assert_eq!(places(split, false, true), [Place::Data, Place::Out, Place::Out]);
        for (way, in_place, through_out) in [
            (split, true, true),
            (split, false, false),
            (split, true, false),
            (stages, false, true),
            (stages, true, true),
            (stages, false, false),
        ] {
            assert_eq!(
                places(way, in_place, through_out),
                [Place::Data, Place::First, Place::Out]
            );
        }
    }
}
