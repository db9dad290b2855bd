//! OpenCL manager: loads OpenCL at run time and provides contexts, queues, buffers and programs.
//!
//! | types | purpose |
//! |---|---|
//! | [`Engine`] | one device with all that a program needs: context, queues, programs, buffers |
//! | [`Manager`] | the OpenCL libraries found and their devices |
//! | [`Device`], [`DeviceInfo`], [`Context`] | what a device can do; a context of exactly one device |
//! | [`Queue`], [`CommandQueuePool`], [`Event`], [`UserEvent`] | in-order queues, leased from a pool; completion |
//! | [`Program`], [`ProgramCache`], [`Kernel`] | compilation, the cache of compiled programs, launches |
//! | [`RegularBuffer`], [`SvmBuffer`], [`HostPtrBuffer`] | the kinds of memory; [`SubBuffer`] is a part of one |
//! | [`BufferFactory`], [`BufferPolicy`], [`Buffer`] | one type over all kinds, chosen by rules and explained |
//! | [`BufferBridge`] | copies between contexts |
//! | [`MemoryPool`] | memory kept for the next request |
//! | [`ExternalContexts`], [`ExternalBuffer`], [`ExternalQueue`] | objects that other code created |
//! | [`ImportedBuffer`], [`Semaphore`] | memory and semaphores by file descriptor, where the device has them |
//! | [`StrictAmd`] | makes any OpenCL implementation as strict as AMD's, for tests |
//! | [`Api`] | the table of function pointers that everything above calls through |
//!
//! ```
//! use clmgr::{Arg, Context, Manager, NdRange, Program, SvmBuffer};
//!
//! # fn main() -> clmgr::Result<()> {
//! let device = Manager::load()?.devices().remove(0);
//! let context = Context::new(&device)?;
//! let queue = context.queue()?;
//! let source = "kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }";
//! let scale = Program::build(&context, source, "")?.kernel("scale")?;
//!
//! let mut data = SvmBuffer::coarse(&context, 1000)?;
//! data.write(&queue, &[2.0f32; 1000])?;
//! // SAFETY: the kernel touches the 1000 elements of `data`, which nothing else uses.
//! unsafe { scale.launch(&queue, NdRange::d1(data.len()), &[data.arg(), Arg::scalar(&1.5f32)])? };
//! assert!(data.map(&queue)?.iter().all(|&x| x == 3.0));
//! # Ok(())
//! # }
//! ```
//!
//! # What this layer does
//!
//! * It loads OpenCL at run time and links nothing. Without OpenCL, [`Manager::load`] returns an error that lists what
//!   was tried.
//! * Every safe call either completes before it returns or is ordered by the queue it names. Dropping a buffer never
//!   frees memory that enqueued commands still use: each allocation records the queues that used it, and its drop waits
//!   for them, because `clSVMFree` does not.
//! * It refuses an impossible choice of memory and never substitutes another one.
//!
//! # What it does not do
//!
//! * It does not order kernels on different queues. Use [`Queue::wait_for`].
//! * It does not create out-of-order queues, because ROCm has none, or contexts of several devices, because ROCm then
//!   moves their memory to the host.
//! * It does not use HIP.

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Each group uses only itself and those above it.

// What every module uses.
mod access;
mod api;
mod deferred;
mod ending;
mod error;
mod handle;
mod query;
mod sweep;

// OpenCL on this machine and its devices.
mod device;
mod loader;
mod platform;
mod pocl;
mod strict_amd;

// Contexts and their queues. These four know each other: a context finds the usage of its memory, and a usage names
// queues and events.
mod context;
mod event;
mod queue;
mod usage;

// Programs and kernels; queues on loan.
mod cache;
mod kernel;
mod pool;
mod program;

// Memory.
mod bridge;
mod buffer;
mod external;
mod factory;
mod memory_pool;
mod share;

// What is made of all of these.
mod engine;
mod manager;

pub use access::{Access, BufferAccess};
pub use api::Api;
pub use bridge::{BridgeCopy, BridgeRoute, BufferBridge};
pub use buffer::{
    BoxLayout, ClMap, ClMapMut, HostPtrBuffer, MemMut, MemRef, Pending, RegularBuffer, SubBuffer, SubBufferMut,
    SvmBuffer, SvmGrain, SvmMap, SvmMapMut, SvmView,
};
pub use cache::{CacheStats, ProgramCache};
pub use context::Context;
pub use device::{
    Device, DeviceInfo, DeviceKind, FloatSupport, HandleKind, PciAddress, SemaphoreKind, SubGroups, SvmCapabilities,
};
pub use engine::Engine;
pub use error::{BuildFailure, Error, Result, Tried};
pub use event::{Completion, Event, Profile, UserEvent};
pub use external::{ExternalBuffer, ExternalBufferInfo, ExternalContexts, ExternalQueue, Needs};
pub use factory::{
    Buffer, BufferChoice, BufferFactory, BufferPolicy, BufferRequest, BufferRule, BufferStrategy, MapGuard, MapGuardMut,
};
pub use kernel::{AddressSpace, Arg, BoundKernel, Kernel, KernelInfo, NdRange, ObjectKind, ParameterInfo};
pub use manager::{LibraryInfo, LibraryKind, Manager};
pub use memory_pool::{MemoryPool, PoolStats, PooledBuffer};
pub use opencl_sys;
pub use pool::{CommandQueuePool, QueueLease};
pub use program::Program;
pub use queue::{Queue, WeakQueue};
pub use share::{AcquiredBuffer, ImportedBuffer, Semaphore};
pub use strict_amd::{Hazard, HazardKind, StrictAmd};
#[doc(hidden)]
pub use sweep::Sweep;

/// A single-precision complex number, laid out as OpenCL's `float2`.
pub type C32 = num_complex::Complex<f32>;
