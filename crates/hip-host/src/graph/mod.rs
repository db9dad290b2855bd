//! Graphs: work described once and done any number of times.
//!
//! | module | what |
//! |---|---|
//! | `operation` | what a node does |
//! | `routine` | a call of rocBLAS or rocSOLVER as a node |
//! | `nodes` | nodes and the order between them |
//! | `build` | the calls that make, ask and change graphs |
//! | `params` | the calls for the parameters of nodes |
//! | `exec` | graphs made ready, launched, changed and updated |
//! | `capture` | what streams are told, recorded as a graph |
//!
//! A launch puts the nodes into the stream one after another, in an order that keeps every wait; branches that could
//! run side by side do not, but each kernel uses all threads anyway. A node that waits for one beside it would wait
//! forever.

mod build;
pub(crate) mod capture;
mod exec;
mod nodes;
mod operation;
mod params;
mod routine;

pub(crate) use build::*;
pub(crate) use capture::calls::*;
pub(crate) use exec::*;
pub(crate) use operation::Operation;
pub(crate) use params::*;
pub(crate) use routine::Routine;
