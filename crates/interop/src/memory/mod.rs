//! Memory that both APIs use, as a program sees it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`shared`] | a buffer, which stays in the memory of its route or goes on in another |
//! | [`part`] | parts of a buffer, each ordered separately |
//! | [`guard`] | access for as long as a borrow lasts |
//! | [`transfer`] | transfers of parts that are not waited for |
//! | [`facts`] | what is known about the memory in use |
//! | [`operand`] | both of them as operands of rocBLAS and rocSOLVER |
//! | [`allocation`] | one memory of a buffer, and everyone who was given access to it |

mod allocation;
mod facts;
mod guard;
mod operand;
mod part;
mod range;
mod shared;
mod transfer;

pub(crate) use allocation::SharedAllocation;
pub use facts::MemoryFacts;
pub use guard::{ClGuard, ClGuardMut, ClRange, HipGuard, HipGuardMut};
pub use part::{Part, PartMut};
pub use shared::Shared;
pub(crate) use shared::bytes_of;
