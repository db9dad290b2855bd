//! OpenCL objects that someone else created.
//!
//! | type | what it is |
//! |---|---|
//! | [`ExternalContexts`] | where foreign handles are brought in; each object has one value, retained once |
//! | [`ExternalBufferInfo`] | everything that OpenCL reports about a foreign buffer |
//! | [`ExternalBuffer`] | a foreign buffer of `T`, used like one of ours |
//! | [`ExternalQueue`] | a foreign queue, ordered against ours |

mod buffer;
mod contexts;
mod info;
mod queue;

pub use buffer::{ExternalBuffer, Needs};
pub use contexts::ExternalContexts;
pub use info::ExternalBufferInfo;
pub use queue::ExternalQueue;
