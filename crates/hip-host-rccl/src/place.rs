//! The place of a call among those of all ranks.

use serde::{Deserialize, Serialize};

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
