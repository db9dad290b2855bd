//! Which side has parts of memory that belongs to one API as a whole.

use std::ops::Range;

use crate::values::{Access, Side};

/// What each side was granted since the buffer was last borrowed exclusively, when no part and no guard
/// was alive. Guards are not followed to their end: one that is leaked must not look like one that is
/// over.
#[derive(Default)]
pub(crate) struct Sides {
    cl: Option<Taken>,
    hip: Option<Taken>,
}

/// The first part, and whether any of that side is written.
struct Taken {
    range: Range<usize>,
    access: Access,
}

impl Sides {
    /// Enters a part, or returns the one on the other side that keeps it from changing sides. What both
    /// sides only read may be on both.
    pub(crate) fn take(&mut self, side: Side, access: Access, range: &Range<usize>) -> Result<(), Range<usize>> {
        let (own, other) = match side {
            Side::Cl => (&mut self.cl, &self.hip),
            Side::Hip => (&mut self.hip, &self.cl),
        };
        if let Some(other) = other
            && (access == Access::Write || other.access == Access::Write)
        {
            return Err(other.range.clone());
        }
        match own {
            Some(taken) if access == Access::Write && taken.access == Access::Read => {
                *taken = Taken {
                    range: range.clone(),
                    access,
                };
            }
            Some(_) => {}
            None => {
                *own = Some(Taken {
                    range: range.clone(),
                    access,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_writes_or_both_read() {
        let mut sides = Sides::default();
        assert_eq!(sides.take(Side::Cl, Access::Read, &(0..4)), Ok(()));
        assert_eq!(sides.take(Side::Hip, Access::Read, &(4..8)), Ok(()));
        assert_eq!(sides.take(Side::Hip, Access::Write, &(4..8)), Err(0..4));
        assert_eq!(sides.take(Side::Cl, Access::Write, &(0..4)), Err(4..8));
        let mut sides = Sides::default();
        assert_eq!(sides.take(Side::Cl, Access::Read, &(0..4)), Ok(()));
        assert_eq!(sides.take(Side::Cl, Access::Write, &(8..9)), Ok(()));
        assert_eq!(sides.take(Side::Cl, Access::Write, &(4..8)), Ok(()));
        assert_eq!(sides.take(Side::Hip, Access::Read, &(4..8)), Err(8..9));
    }
}
