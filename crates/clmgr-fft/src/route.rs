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
    /// A kernel of the passes, or the first step of a split, never writes where it reads, unless it
    /// is the only one; the second step of a split works in place. Between two stages
    /// the data lies in another order, in which the second one must not write.
    pub fn of(way: Way, kernels: usize, in_place: bool) -> Self {
        let mut places = vec![Place::Data];
        match (way, in_place) {
            (Way::Split { .. }, false) => places.extend([Place::Out, Place::Out]),
            (Way::Split { .. }, true) | (Way::Stages { .. }, _) => places.extend([Place::First, Place::Out]),
            // Back from the last place, out and scratch take turns.
            (_, false) => {
                places.extend((0..kernels).map(|index| match (kernels - 1 - index) % 2 {
                    0 => Place::Out,
                    _ => Place::First,
                }));
            }
            (_, true) if kernels == 1 => places.push(Place::Out),
            // The first place must not be the data: of an odd number one goes to a second scratch.
            (_, true) => {
                places.extend((0..kernels).map(|index| match kernels - 1 - index {
                    0 => Place::Out,
                    left if left % 2 == 1 => Place::First,
                    _ if index == 0 => Place::Second,
                    _ => Place::Out,
                }));
            }
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
        for kernels in 1..9 {
            for in_place in [false, true] {
                let route = Route::of(Way::Passes, kernels, in_place);
                assert_eq!(route.places.len(), kernels + 1);
                assert_eq!(route.places[kernels], Place::Out);
                for pair in route.places.windows(2) {
                    let same = pair[0] == pair[1] || (in_place && pair == [Place::Data, Place::Out]);
                    assert!(!same || kernels == 1, "{kernels} kernels: {:?}", route.places);
                }
            }
        }
    }
}
