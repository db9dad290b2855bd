//! The objects of one kind, by place.
//!
//! | module | what |
//! |---|---|
//! | `word` | the state of a slot, in one atomic word |
//! | `slots` | the slots, and who holds their objects |
//! | `sync` | the primitives below, which the model check replaces |
//!
//! A call looks an object up with one atomic operation and lets it go with another; it takes no lock and counts no second
//! reference. Only a new object and the end of one take the lock of the list of empty slots. Slots never move and are
//! never freed, so that a reference to one lasts.

#[cfg(test)]
mod model;
#[cfg_attr(
    test,
    allow(clippy::duplicate_mod, reason = "the model check has it over other primitives")
)]
mod slots;
mod sync;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use slots::{Alone, Held, INDEX_BITS, Table};
pub(crate) use word::{Miss, Place};
