//! Safe RCCL: collectives between GPUs, on HIP streams.
//!
//! | item | what | C API |
//! |---|---|---|
//! | [`Library`] | the function table | |
//! | [`UniqueId`] | by what ranks find each other | `ncclUniqueId` |
//! | [`Communicator`] | one rank, on one device | `ncclComm_t` |
//! | [`Communicator::new`], [`new_within`](Communicator::new_within), [`all`](Communicator::all), [`split`](Communicator::split) | ranks that find each other, also within a limit | `ncclCommInitRank` and so on |
//! | [`Communicator::all_reduce`], [`reduce`](Communicator::reduce), [`broadcast`](Communicator::broadcast), [`all_gather`](Communicator::all_gather), [`reduce_scatter`](Communicator::reduce_scatter) | collectives, and each but `broadcast` with `_in_place` | `ncclAllReduce` and so on |
//! | [`Communicator::send`], [`recv`](Communicator::recv) | a message to or from a peer | `ncclSend`, `ncclRecv` |
//! | [`Library::group`], [`Group`] | calls that are queued at once: exchanges, and several ranks in one thread | `ncclGroupStart`, `ncclGroupEnd` |
//! | [`Communicator::capture`] | calls in a graph | `hipStreamBeginCapture` |
//! | [`Communicator::check`], [`wait`](Communicator::wait), [`abort`](Communicator::abort) | when another rank fails | `ncclCommGetAsyncError`, `ncclCommAbort` |
//!
//! # Calls
//!
//! A call queues its work on a stream of the communicator's device and returns. All ranks have to make equal calls in
//! the same order: the real library does not notice where they differ, and hangs, or returns wrong numbers. The double
//! of the host platform (`hip-host-rccl`) reports it to all ranks.
//!
//! Memory is taken by the call, as `rocblas` does: whatever is a [`hip::DeviceMemory`], or [`hip::DeviceMemoryMut`] for
//! what is written. A call checks the lengths, takes its memory on the stream, checks them again, and refuses memory
//! that is written and lies where other memory of the call or its [`Group`] does.
//!
//! A wait for the stream alone does not see that another rank has failed, and with the real library never ends then.
//! [`Communicator::wait`] does, and has a time limit.
//!
//! Two communicators of one process on the same devices can wait for each other, for example if memory is freed between
//! their calls: HIP waits for all streams of a device then, and a collective waits for its other ranks. Queue the calls
//! of both in the same order on all ranks, and free memory when their work has ended.
//!
//! # Graphs
//!
//! [`Communicator::capture`] records calls in a graph, whose launches make them again; inside [`hip::Stream::capture`]
//! they are recorded as well. The graph keeps the communicator, and aborts it if a launch does not end.
//!
//! # What it does not do
//!
//! It starts no ranks and moves no ids between processes. Libraries before NCCL 2.13 and RCCL of ROCm 5.4 make no calls
//! inside a capture ([`Error::Captured`]), and neither is one made on a foreign stream that its owner captures.
//! Operations of the program's own, registered buffers and configurations are in [`Library::api`] only.
//!
//! # Example
//!
//! ```
//! # // SAFETY: a program of one thread so far.
//! # unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") };
//! use std::sync::Arc;
//!
//! use rccl::{Communicator, Library, ReduceOp};
//!
//! // SAFETY: both tables come from the same platform.
//! let (runtime, library) = unsafe {
//!     (
//!         hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
//!         Library::from_tables(Arc::new(hip_host_rccl::rccl_api())),
//!     )
//! };
//! let devices = [runtime.device(0)?, runtime.device(1)?];
//! let streams = [devices[0].stream()?, devices[1].stream()?];
//! let ranks = Communicator::all(&library, &devices)?;
//! let mut a = devices[0].alloc_from(&streams[0], &[1.0_f32, 2.0])?;
//! let mut b = devices[1].alloc_from(&streams[1], &[10.0_f32, 20.0])?;
//!
//! // One thread has both ranks, so their calls are one group.
//! library.group(|group| {
//!     group.all_reduce_in_place(&ranks[0], &mut a, ReduceOp::Sum, &streams[0])?;
//!     group.all_reduce_in_place(&ranks[1], &mut b, ReduceOp::Sum, &streams[1])
//! })?;
//!
//! let mut sum = [0.0; 2];
//! a.copy_to_slice(&streams[0], &mut sum)?;
//! assert_eq!(sum, [11.0, 22.0]);
//! # Ok::<(), rccl::Error>(())
//! ```

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The modules from the lowest up: none uses one of a later group.
mod element;
mod error;
mod library;

mod core;

mod communicator;

mod within;

mod group;

mod calls;

pub use communicator::Communicator;
pub use element::{Element, ReduceOp};
pub use error::{Error, Result};
pub use group::Group;
pub use hip;
pub use library::{Library, UniqueId};
