//! The place of a call among those of all ranks.

use serde::{Deserialize, Serialize};

use crate::operation::{Kind, Operation};

/// The n-th from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) number: u64,
}

/// Where a call belongs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Place {
    Collective(u64),
    Message(Message),
}

impl Place {
    /// Whether a call of `rank` can be there.
    pub(crate) fn fits(self, rank: usize, operation: &Operation) -> bool {
        match (self, operation.kind) {
            (Self::Message(message), Kind::Send) => (message.from, message.to) == (rank, operation.root),
            (Self::Message(message), Kind::Recv) => (message.from, message.to) == (operation.root, rank),
            (Self::Message(_), _) | (Self::Collective(_), Kind::Send | Kind::Recv) => false,
            (Self::Collective(_), _) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use rccl_sys::{ncclDataType_t, ncclRedOp_t};

    use super::*;

    #[test]
    fn a_message_is_between_its_ranks_and_a_collective_is_none() {
        let call = |kind, root| Operation {
            kind,
            send: 0,
            recv: 0,
            count: 1,
            datatype: ncclDataType_t::ncclFloat32,
            op: ncclRedOp_t::ncclSum,
            root,
            captured: false,
        };
        let message = |from, to| Place::Message(Message { from, to, number: 1 });
        assert!(message(1, 2).fits(1, &call(Kind::Send, 2)));
        assert!(message(1, 2).fits(2, &call(Kind::Recv, 1)));
        assert!(Place::Collective(1).fits(1, &call(Kind::Reduce, 2)));
        for (place, rank, call) in [
            (message(1, 2), 2, call(Kind::Send, 2)),
            (message(1, 2), 1, call(Kind::Send, 0)),
            (message(1, 2), 1, call(Kind::Recv, 1)),
            (message(1, 9), 1, call(Kind::Send, 2)),
            (message(1, 2), 2, call(Kind::Reduce, 1)),
            (Place::Collective(1), 1, call(Kind::Send, 2)),
        ] {
            assert!(!place.fits(rank, &call), "{place:?} {call:?}");
        }
    }
}
