//! HIP, HIPRTC and the used part of HSA as a strict software device. rocBLAS and rocSOLVER on it are `hip-host-blas`.
//!
//! Each function table contains real C functions with ROCm's error codes. The slot of a function that is not
//! implemented is empty; there are no stubs. The library exports no C symbols, so it cannot hide a real `hipMalloc`.
//!
//! | module | what |
//! |---|---|
//! | `device`, `primary_context` | devices and their attributes; the state of a program on a device, and its reset |
//! | `error`, `api_names` | codes and the thread's last error; names of functions by number |
//! | `memory` | an address registry, allocation between guard pages, copies and fills |
//! | `stream`, `event` | a thread for each stream, and points in it |
//! | `ending` | what streams do when the process ends |
//! | `graph` | graphs, built explicitly or captured from streams |
//! | `kernel`, `workers` | kernels: their code, run over a pool of threads |
//! | `rtc`, `module`, `launch` | the calls that compile kernels by the machine's C++ compiler, load and launch them |
//! | [`library`] | what a library needs that computes on streams |
//! | [`registered`], `lookup` | what a program's own binary would register; functions by name |
//! | [`absent`], [`coverage`] | what is not implemented, and what is |
//! | `hsa`, [`foreign`] | the owner of an address; registration of OpenCL memory |
//! | [`faults`] | failures and delays on demand |
//!
//! # What it enforces
//!
//! - Where ROCm refuses a call, so does the model, with ROCm's code. Where ROCm's behaviour is undefined (a freed
//!   pointer, a destroyed handle, OpenCL device memory in `hipMemcpy`), the model returns an error; `HIP_HOST_LOG=1`
//!   prints the reason.
//! - Pointers *inside* kernels are raw, as on a GPU. Allocations lie between guard pages, so an overrun faults.
//! - ROCm permits some calls that HIP's documentation describes as errors, such as freeing pinned memory with
//!   `hipFree`. The model refuses those too, unless `HIP_HOST_STRICT=0` requests ROCm's behaviour.
//! - Access to another device's memory needs peer access where kernels would access it: in the addresses
//!   among a kernel's parameters, rocBLAS, rocSOLVER and stream memory operations.
//! - New allocations of up to 64 KiB are filled with the byte 0xa5, so reads of unwritten memory are visible.
//!
//! # What runs fast
//!
//! - A block without barriers runs as a loop over its threads, which the compiler vectorises where consecutive threads
//!   access consecutive elements. A bound such as `if (i < n)` is free if the kernel computes its global index in one
//!   statement and compares it in the same type: such kernels run at memory speed.
//! - Threads that wait at barriers are coroutines; a barrier takes tens of nanoseconds per thread.
//! - A grid-stride loop walks through the memory once for every thread and is slow where the stride exceeds the cache.
//!   Prefer one element per thread.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `HIP_HOST_DEVICES` | number of devices, 1 if unset |
//! | `HIP_HOST_ARCHITECTURE` | the name reported as `gcnArchName`, such as `gfx908:sramecc+:xnack-`; nothing else changes. `host` if unset |
//! | `HIP_HOST_LOG` | 1: report on standard error why a call was refused; 2: also every call with its result |
//! | `HIP_HOST_FAIL`, `HIP_HOST_DELAY` | see [`faults`] |
//! | `HIPCL_CXX`, `CXX` | the C++ compiler; else `c++`, `g++`, `clang++` |
//! | `HIP_HOST_STRICT` | 0: permit what ROCm permits against its documentation; 2: device memory faults when the host accesses it while no stream works on memory; 1 if unset |
//! | `GPU_MAX_HW_QUEUES` | as for ROCm, how many hardware queues the streams of one priority share. If unset, each stream has its own, and at `HIP_HOST_STRICT=2` there are 4 |
//! | `HIP_HOST_MARCH` | the processor that kernels are compiled for; this one if unset |
//! | `HIP_HOST_SANITIZE` | `address`: kernels report the first byte outside an allocation; needs the sanitizer preloaded |
//! | `HIPCL_CACHE_DIR` | the folder for compiled kernels; the user's cache folder if unset |

// Each group uses only itself and those above it.

// What every module uses.
mod ending;
mod error;
pub mod faults;
mod frame;
mod handles;
mod log;
mod sanitizer;
mod strict;
mod work;
mod workers;

// Devices, and kernels on their threads.
mod device;
mod kernel;

// Work in order. These four know each other: a stream that captures records a graph, whose nodes copy memory and wait
// for events.
mod event;
mod graph;
mod memory;
mod stream;

// The calls about kernels, and about whole devices.
mod launch;
mod module;
mod primary_context;
mod rtc;

// The other libraries.
pub mod foreign;
mod hsa;
pub mod library;

// The table of HIP, and what is asked of it.
pub mod absent;
mod api_names;
pub mod coverage;
mod lookup;
pub mod registered;
mod table;

pub use table::hip_api;

/// The HIPRTC function table.
#[must_use]
pub const fn rtc_api() -> hip_sys::RtcApi {
    rtc::api()
}

/// The table of the HSA functions in use.
#[must_use]
pub const fn hsa_api() -> hsa_sys::Api {
    hsa::api()
}
