//! Graphs: work described once and run any number of times.
//!
//! | module | what |
//! |---|---|
//! | `operation` | what a node does |
//! | `routine` | a call of rocBLAS or rocSOLVER as a node |
//! | `nodes` | nodes and the order between them |
//! | `build` | the calls that make, ask and change graphs |
//! | `params` | the calls for the parameters of nodes |
//! | `any` | the calls that add nodes of any kind, and those in the driver's words |
//! | `object` | objects of the program that a graph keeps alive |
//! | `memory` | memory that belongs to a graph |
//! | `plan` | which operations run side by side |
//! | `exec` | graphs made ready, launched, changed and updated |
//! | `capture` | calls on streams, recorded as a graph |
//!
//! A launch puts a chain of nodes into its stream, and other branches into helper streams that it borrows, at most
//! seven; so branches run side by side, and every wait between nodes is kept. The launch is done when all are.

mod any;
mod build;
pub(crate) mod capture;
mod exec;
mod memory;
mod nodes;
mod object;
mod operation;
mod params;
mod plan;
mod routine;

pub(crate) use any::*;
pub(crate) use build::*;
pub(crate) use capture::calls::*;
pub(crate) use exec::*;
pub(crate) use memory::*;
pub(crate) use object::*;
pub(crate) use operation::Operation;
pub(crate) use params::*;
pub(crate) use routine::Routine;
