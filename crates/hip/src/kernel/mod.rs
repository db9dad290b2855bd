//! Loaded code and its launches.

mod arg;
mod module;
mod occupancy;
mod typed;

pub use arg::KernelArg;
pub use module::{Function, Module};
pub use occupancy::BlockSuggestion;
pub use typed::{ByValue, Kernel, Param, Params, param};
