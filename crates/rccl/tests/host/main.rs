//! RCCL on the software devices: the ranks are threads, each with its own device.

mod collectives;
mod common;
mod failures;
mod graph_ends;
mod graphs;
mod lifetimes;
mod messages;
mod refusals;
mod splits;
mod starts;
