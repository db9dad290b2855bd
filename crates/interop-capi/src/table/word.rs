//! The state of a slot: one word, so that one atomic operation both compares and changes it.
//!
//! | bits 63 to 32 | 31 | 30 | 29 | 28 to 0 |
//! |---|---|---|---|---|
//! | generation | alive | alone | given | holders |
//!
//! | word | means |
//! |---|---|
//! | 0 | the slot never had an object |
//! | alive | the handle of this generation finds the object |
//! | alive and alone | one of the holders has the object's value to itself |
//! | not alive, with holders | the object was retired; the last holder takes it out |
//! | not alive, no holders | empty: the generation is that of the next object, if there is one |

/// Where an object is: what a handle says about it besides its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Why a place gave no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Its object was retired.
    Stale,
    /// It never had one.
    Unknown,
    /// A holder has the object who does not go together with this one.
    Busy,
}

/// How a holder has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// With all others.
    Any,
    /// Not together with one that is alone.
    Shared,
    /// As the first; later ones may come only by [`Way::Any`].
    Alone,
}

const ALIVE: u64 = 1 << 31;
const ALONE: u64 = 1 << 30;
const GIVEN: u64 = 1 << 29;
const HOLDER: u64 = 1;
/// More holders than a program can have; beyond, one is refused as if the object were busy.
const MOST_HOLDERS: u64 = GIVEN - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    pub(super) const NEW: Self = Self(0);

    pub(super) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn holders(self) -> u64 {
        self.0 & MOST_HOLDERS
    }

    /// With an object without holders, in an empty slot.
    pub(super) const fn published(self) -> Self {
        Self(self.0 | ALIVE | GIVEN)
    }

    /// Without the object, which was retired and has no holder; `None` if there are no more generations.
    pub(super) const fn emptied(self) -> Option<Self> {
        match self.generation().checked_add(1) {
            Some(next) => Some(Self((next as u64) << 32 | GIVEN)),
            None => None,
        }
    }

    /// With one holder more.
    #[inline]
    pub(super) fn held(self, generation: u32, way: Way) -> Result<Self, Miss> {
        // One comparison for the way of every good call: the generation, alive, and whether one is alone.
        let (ignored, more) = match way {
            Way::Any => (ALONE | MOST_HOLDERS, HOLDER),
            Way::Shared => (MOST_HOLDERS, HOLDER),
            Way::Alone => (0, ALONE | HOLDER),
        };
        let free = u64::from(generation) << 32 | ALIVE | GIVEN;
        match self.0 & !ignored == free && self.holders() < MOST_HOLDERS {
            true => Ok(Self(self.0 + more)),
            false => Err(self.missed(generation)),
        }
    }

    /// With one holder less, who had the object in this way.
    pub(super) const fn less(way: Way) -> u64 {
        match way {
            Way::Any | Way::Shared => HOLDER,
            Way::Alone => ALONE | HOLDER,
        }
    }

    /// Whether the object is to be taken out: it was retired and has no holder.
    pub(super) const fn is_over(self) -> bool {
        self.0 & (ALIVE | MOST_HOLDERS) == 0
    }

    /// With the object retired.
    pub(super) fn retired(self, generation: u32) -> Result<Self, Miss> {
        match self.generation() == generation && self.0 & ALIVE != 0 {
            true => Ok(Self(self.0 & !ALIVE)),
            false => Err(self.missed(generation)),
        }
    }

    /// As [`retired`](Self::retired), of an object without holders.
    pub(super) fn taken(self, generation: u32) -> Result<Self, Miss> {
        let retired = self.retired(generation)?;
        match retired.is_over() {
            true => Ok(retired),
            false => Err(Miss::Busy),
        }
    }

    #[cold]
    fn missed(self, generation: u32) -> Miss {
        match self.generation() == generation {
            true if self.0 & ALIVE != 0 => Miss::Busy,
            _ if self == Self::NEW || generation > self.generation() => Miss::Unknown,
            _ => Miss::Stale,
        }
    }

    #[cfg(test)]
    pub(super) fn of_generation(generation: u32) -> Self {
        Self(u64::from(generation) << 32 | GIVEN)
    }
}
