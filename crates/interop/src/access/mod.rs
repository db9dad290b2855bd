//! Who works on which bytes, and who has to wait for whom.
//!
//! | module | what it knows |
//! |---|---|
//! | [`uses`] | the queues and streams that may be working on some memory, and their order |
//! | [`alias`] | which views show the same bytes |
//! | [`sides`] | which API has parts of memory that is handed over as a whole |
//! | [`outcome`] | how the order between two users turned out |
//!
//! How one user is ordered after another is up to the hand-offs above.

mod alias;
mod outcome;
mod sides;
mod uses;

pub(crate) use alias::{Space, Span, VIEWS, View};
pub(crate) use outcome::Outcome;
pub(crate) use sides::Sides;
#[cfg(any(test, feature = "vulkan"))]
pub(crate) use uses::Worker;
pub(crate) use uses::{Claim, Hold, Order, Ordered, User};
