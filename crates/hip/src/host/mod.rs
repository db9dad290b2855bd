//! Host memory that the device can reach.

mod managed;
mod memory;
mod pinned;
mod registered;

pub use managed::{Advice, Location, ManagedBuffer};
pub use pinned::PinnedBuffer;
pub use registered::{Registered, RegisteredMut, with_registered};
