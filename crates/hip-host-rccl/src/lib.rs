//! RCCL on the software devices of `hip-host`: a strict test double.
//!
//! It joins ranks that are threads or processes of one machine and moves their data through host memory. It is there to
//! test programs, and is no transport. The ranks meet in the process that made the id: those of other processes send it
//! what their calls read, over a socket without a file, and get what they write. When a process ends, killed or not, the
//! ranks of the others get an error at once, and nothing is left on the machine.
//!
//! | module | what |
//! |---|---|
//! | `status` | codes, and the text behind a failure |
//! | `operation`, `place` | one call, as its rank made it, and its place among those of all ranks |
//! | `reduce`, `transfer` | what a complete operation does to memory |
//! | `meeting` | where the ranks of a communicator meet: in this process or in another |
//! | `clique` | the ranks that meet here: who is there, and whose calls belong together |
//! | `server`, `remote`, `wire` | ranks of other processes: where they meet, as themselves, and what both say |
//! | `comm` | handles, and the ids by which ranks find each other |
//! | `config`, `progress` | communicators that do not block, and how far their calls are |
//! | `group` | calls that are collected and issued at once |
//! | `issue`, `graphs` | calls on their way into streams and graphs, and which graphs have them |
//! | `calls` | the C functions |
//! | `limit` | how long a rank waits for the others |
//!
//! # What it enforces
//!
//! The real library hangs, or corrupts memory, where ranks disagree. Here each of these is a failure of the
//! communicator, which every rank gets as its asynchronous error, with a text by `ncclGetLastError` that names the ranks
//! and their calls. The streams that take part fail too, for their results are not there.
//!
//! | fault | code |
//! |---|---|
//! | calls of different kinds, counts, types, operations or roots | `ncclInvalidUsage` |
//! | ranks that disagree about their number, one rank twice, two ranks on one device | `ncclInvalidUsage` |
//! | a rank that does not come within the [time limit](set_time_limit) | `ncclRemoteError` |
//! | a rank that destroyed its communicator although others wait for it | `ncclRemoteError` |
//! | a process that ended, and had a rank or the place where the ranks meet | `ncclRemoteError` |
//!
//! `ncclCommAbort` ends all waiting work without failing a stream, as in the real library; the other ranks get
//! `ncclRemoteError`. A failed communicator refuses every further call. A call on a stream of another device, with memory
//! that the device does not reach, or with buffers that overlap in part is refused before it is queued.
//!
//! A capturing stream records a call, or those of a group, as one kernel node. Each launch of the graph is a call of its
//! own, with its place among all calls of the rank in the order of launches, so that the table above holds for it too.
//! Ranks disagree as well where one makes a call in a graph and another makes it outside. The calls of a communicator in one
//! group are all in one graph, or all outside. A communicator ends when no graph has calls of it any more: the real
//! library waits for ever, here the end is refused with `ncclInvalidUsage` at the time limit.
//!
//! # What it lacks
//!
//! Of configurations it has `blocking` only. Slots that are empty: gather, scatter, all-to-all (a group of sends and
//! receives does it), operations of the program's own. Elements of 8-bit floating point move, but do not add up.
//!
//! The parts of a split meet in the process that made the id too, so that process must outlive them.
//!
//! Sums of `f16` and `bf16` are made in `f32`, in the order of the ranks, and rounded once. The real library adds in
//! another order.

mod calls;
mod clique;
mod comm;
mod config;
mod graphs;
mod group;
mod issue;
mod limit;
mod meeting;
mod operation;
mod place;
mod progress;
mod reduce;
mod remote;
mod server;
mod status;
mod transfer;
mod wire;

pub use calls::rccl_api;
pub use limit::set_time_limit;
