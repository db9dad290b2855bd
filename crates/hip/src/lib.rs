//! Safe HIP: devices, streams, events, memory and run-time compilation.
//!
//! | types | purpose | C API |
//! |---|---|---|
//! | [`Runtime`] | a loaded HIP library, its versions, its devices | `hipInit`, `hipGetDeviceCount` |
//! | [`Device`] | one GPU: name, architecture, PCI address, memory | `hipDevice*` |
//! | [`Stream`], [`Event`] | ordered work, and points in it | `hipStream*`, `hipEvent*` |
//! | [`Completion`], [`Stream::host_function`], [`Stream::on_complete`] | an event as a future; host functions in a stream | `hipLaunchHostFunc`, `hipStreamAddCallback` |
//! | [`Flag`] | a word that streams and the host write and wait for | `hipStreamWaitValue*`, `hipStreamWriteValue*` |
//! | [`DeviceBuffer`] | device memory with an owner | `hipMalloc`, `hipFree` |
//! | [`MemPool`], [`Stream::alloc`] | allocation in stream order | `hipMallocAsync`, `hipMemPool*` |
//! | [`ManagedBuffer`] | one address for host and device | `hipMallocManaged`, `hipMemPrefetchAsync` |
//! | [`ExternalMemory`], [`VirtualMemory`], [`IpcMemory`], [`IpcEvent`] | memory and events shared with other APIs and processes | `hipImportExternalMemory`, `hipMem*`, `hipIpc*` |
//! | [`DeviceSlice`], [`DeviceSliceMut`] | permission to use memory on *one* stream | pointers |
//! | [`DeviceMemory`], [`DeviceMemoryMut`] | what a call can use as memory: any of these | |
//! | [`PinnedBuffer`], [`Registered`] | host memory that the device can reach | `hipHostMalloc`, `hipHostRegister` |
//! | [`rtc`] | compilation of source text to a [`Module`] | `hiprtc*` |
//! | [`Module`], [`Function`], [`Kernel`] | loaded code, kernel launches, typed kernel launches | `hipModule*` |
//! | [`Graph`], [`GraphExec`] | work captured once and run often | `hipStreamBeginCapture`, `hipGraph*` |
//! | [`PointerInfo`], [`BlockSuggestion`] | what HIP reports about an address and a kernel | `hipPointerGetAttributes`, `hipModuleOccupancy*` |
//!
//! `FUNCTIONS.md` lists every C function: wrapped, raw only ([`Runtime::api`]), or out of scope and why.
//!
//! # The ordering model
//!
//! Streams run concurrently, so two streams that access the same memory need an order. The *memory* keeps it:
//!
//! - [`DeviceBuffer::on`] and [`DeviceBuffer::on_mut`] return a slice for one stream, and make that stream wait for the
//!   pending work of other streams on the buffer.
//! - The slice borrows the buffer, so the borrow checker forbids a reader next to a writer.
//! - The buffer records which streams used it, and its drop waits for them.
//! - Nothing depends on the destructor of a slice: leaking one (`std::mem::forget`) is harmless.
//!
//! # What it does
//!
//! - Every safe function either completes before it returns, or borrows or owns what the device still uses. (The next
//!   section names the exception.)
//! - Each call that depends on HIP's current device makes its device current on the calling thread first. The thread's
//!   earlier choice is not restored.
//! - Streams are made non-blocking and the null stream is never used for work that returns early, so nothing is ordered
//!   by accident.
//! - A function that the loaded library lacks is [`Error::MissingSymbol`], and only for the call that needs it.
//! - Errors found while dropping are logged (feature `tracing`, on by default) and kept for
//!   [`Runtime::take_deferred_errors`].
//!
//! # What it does not do
//!
//! - On ROCm one failed device ends all answers of HIP in the process, while the other devices go on. A copy to or from a
//!   host slice that waits at that moment returns the error, and if the slice is page-locked, the device may use it
//!   after that. Memory that this crate owns is leaked then; a borrowed slice cannot be. A program that goes on
//!   after such an error must not free page-locked memory that it passed as a slice.
//! - HIP frees device memory, modules and virtual memory only after all work of the device, and page-locked memory only
//!   after all work of every device. So does whatever frees them here: the drop of their owners, the copies of
//!   rectangles from and to host slices, which pass through page-locked memory, and the streams that give back a dropped
//!   [`Flag`]. A thread that holds a stream back, because it is to store a flag or to let a host function go on, frees
//!   none of these before it has done so. Memory of a pool, streams, events and graphs are freed at once.
//! - It cannot check a kernel: [`Function::launch`] and [`Kernel::launch`] are `unsafe`. So is what depends on another
//!   process or API: importing and opening memory, and running a graph.
//! - It has no textures, no arrays of them and no OpenGL.
//! - It has no executor: [`Completion`] is a future for any executor.
//! - It does not copy to or from memory that another runtime owns ([`Error::ForeignMemory`]): HIP would access it from
//!   the CPU through the pointer, and may crash.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! // SAFETY: both tables come from the same platform.
//! let runtime = unsafe {
//!     hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), Some(Arc::new(hip_host::rtc_api())))
//! }?;
//! let device = runtime.device(0)?;
//! let stream = device.stream()?;
//!
//! let mut numbers = device.alloc_from(&stream, &[1.0_f32, 2.0, 3.0])?;
//! let module = hip::rtc::Program::new(
//!     r#"extern "C" __global__ void twice(float *x, unsigned n) {
//!         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!         if (i < n) x[i] *= 2.0f;
//!     }"#,
//! )
//! .name("twice.hip")
//! .compile(&device)?;
//! let twice = module.function("twice")?;
//!
//! let items = numbers.len();
//! let slice = numbers.on_mut(&stream)?;
//! // SAFETY: the arguments match the kernel's parameters, and it stays below `n`.
//! unsafe { twice.launch(&stream, hip::LaunchConfig::linear(items, 64)?, &[&slice, &(items as u32)])? };
//!
//! let mut result = [0.0; 3];
//! numbers.copy_to_slice(&stream, &mut result)?;
//! assert_eq!(result, [2.0, 4.0, 6.0]);
//! # Ok::<(), hip::Error>(())
//! ```

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The modules from the lowest up: none uses one of a later group.

// A call of the library, and how it fails.
mod call;
mod control;
mod deferred;
mod error;
mod layout;
mod rect;
mod report;
mod runtime;

// A device.
mod device;
mod launch;
mod pointer;

// The order of its work.
mod event;
mod flag;
mod stream;

// The memory that work uses.
mod buffer;
mod host;
mod memory;
mod shared;
mod slice;

// The code that it runs.
mod graph;
mod kernel;
pub mod rtc;

pub use buffer::{DeviceBuffer, MemPool, PoolUsage};
pub use control::{control, is_control};
pub use device::{Device, MemoryInfo, PciAddress, Uuid};
pub use error::{Error, Result};
pub use event::Event;
pub use flag::{Condition, Flag, Word};
pub use graph::{Graph, GraphExec};
pub use host::{Advice, Location, ManagedBuffer, PinnedBuffer, Registered, RegisteredMut, with_registered};
pub use kernel::{BlockSuggestion, ByValue, Function, Kernel, KernelArg, Module, Param, Params, param};
pub use launch::LaunchConfig;
pub use memory::{DeviceMemory, DeviceMemoryMut};
pub use pointer::{MemoryKind, PointerInfo};
pub use rect::Rect;
pub use runtime::{Runtime, Versions};
pub use shared::{Exporter, ExternalMemory, ExternalSemaphore, IpcEvent, IpcMemory, VirtualAccess, VirtualMemory};
pub use slice::{DeviceSlice, DeviceSliceMut};
pub use stream::{Completion, Stream};
