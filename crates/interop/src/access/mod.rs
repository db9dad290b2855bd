//! Who works on which bytes, and who has to wait for whom.
//!
//! | module | what it knows |
//! |---|---|
//! | [`ledger`] | the queues and streams that may be working on some memory, and their order |
//! | [`alias`] | which views show the same bytes |
//! | [`sides`] | which API has parts of memory that is handed over as a whole |
//! | [`outcome`] | how the order between two users turned out |
//!
//! How one user is ordered after another is up to the hand-offs above.

mod alias;
mod ledger;
mod outcome;
mod sides;

pub(crate) use alias::{Space, Span, VIEWS, View};
#[cfg(any(test, feature = "vulkan"))]
pub(crate) use ledger::Worker;
pub(crate) use ledger::{AccessLedger, Claim, Hold, Order, Ordered, User};
pub(crate) use outcome::Outcome;
pub(crate) use sides::Sides;
