//! The C library `libhipcl`: OpenCL and HIP on the same memory, for C and C++.
//!
//! | module | what it exports |
//! |---|---|
//! | `status` | status codes, the thread's last error, the version |
//! | `bridge` | a bridge on fresh objects or on the caller's own, its report and counters |
//! | `queue` | OpenCL queues and HIP streams |
//! | `buffer` | shared memory: allocated, adopted, exported as a descriptor |
//! | `transfer` | parts of buffers from and to the host, fills and copies, also enqueued |
//! | `event` | the end of what was enqueued |
//! | `access` | memory given to a queue or a stream, and back |
//! | `program` | OpenCL programs and kernels, on a queue or on a HIP stream |
//! | `blas` | products and inverses of complex matrices |
//! | `fft` | transforms, on a queue or on a HIP stream |
//! | `doctor` | the findings of the command `hipcl doctor` |
//! | `text` | texts of any length |
//!
//! | module | what these share |
//! |---|---|
//! | `handle` | handles, and what is said about one that cannot be used |
//! | `table` | the objects behind them, and who holds each |
//! | `lend` | shared and exclusive use of a buffer |
//! | `call`, `failure` | the frame of every exported function: panics, errors, pointers |
//! | `values` | named values, and types of OpenCL and HIP |
//!
//! The documentation of the functions is in `include/hipcl.h`, which `cargo xtask codegen` writes from this source. This
//! crate decides nothing: each function checks its arguments and calls the crate `interop` or one below.

#![allow(
    non_camel_case_types,
    reason = "the types have their C names, which the header repeats"
)]
#![allow(
    missing_debug_implementations,
    reason = "the types are C's: handles are numbers, structures are filled by C code"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "what the caller owes is said once for all functions, in the header's introduction"
)]
#![allow(
    clippy::too_many_arguments,
    reason = "BLAS calls have the field's own order of arguments"
)]

mod access;
mod blas;
mod bridge;
mod buffer;
mod call;
mod doctor;
mod event;
mod failure;
mod fft;
mod handle;
mod lend;
mod program;
mod queue;
mod status;
mod table;
mod text;
mod transfer;
mod values;

pub use access::*;
pub use blas::*;
pub use bridge::*;
pub use buffer::*;
pub use doctor::*;
pub use event::*;
pub use fft::*;
pub use program::*;
pub use queue::*;
pub use status::*;
pub use text::*;
pub use transfer::*;
pub use values::*;
