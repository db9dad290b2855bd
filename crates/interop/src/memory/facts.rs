use super::allocation::SharedAllocation;
use crate::{Grade, Residency, Route};

/// What is known about the memory of a [`Shared`](crate::Shared) buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFacts {
    /// How the memory is reached.
    pub route: Route,
    /// Where the bytes live.
    pub residency: Residency,
    /// How a change of side is ordered.
    pub grade: Grade,
    /// The address that each API uses, OpenCL's first, where both are known.
    pub addresses: Option<(usize, usize)>,
}

impl MemoryFacts {
    pub(super) fn of(allocation: &SharedAllocation) -> Self {
        Self {
            route: allocation.route(),
            residency: allocation.residency,
            grade: allocation.handoff().grade(),
            addresses: allocation.addresses(),
        }
    }
}
