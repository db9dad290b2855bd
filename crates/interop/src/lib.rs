//! Zero-copy sharing of GPU memory between OpenCL and HIP.
//!
//! ```text
//!   OpenCL code            your program             HIP, rocBLAS, rocSOLVER
//!        |                      |                              |
//!        |   guard.arg()    Shared<T>    guard.slice()         |
//!        +------------------ Bridge ---------------------------+
//!                 one allocation, counted copies, proven
//! ```
//!
//! A [`Bridge`] pairs one OpenCL device with one HIP device and proves every [`Route`] by a pattern written through one
//! API and read through the other. A [`Shared`] buffer is one allocation that both APIs access. Access goes through
//! guards: work enqueued under a guard runs after the work of the other API that it depends on. The proven hand-off
//! [`Grade`] ensures this order. The [`Meter`] counts every copy call at the function tables of both APIs, so "no copy"
//! is a measurement.
//!
//! Every function of the crate `rocblas` takes shared buffers as they are: a buffer by reference is a
//! [`hip::DeviceMemory`], of which the call takes the guard itself (see [below](#rocblas-and-rocsolver)). A buffer can be
//! used in [parts](Shared::parts_mut), OpenCL on one while HIP is on another. [`dlpack`] lends buffers to tensor libraries
//! and takes their tensors.
//!
//! This crate does not support two processes that use the same memory at the same time, or sharing with more than one
//! other process. Parts of one buffer cannot be on both sides where OpenCL hands over memory as a whole
//! ([`Route::ExternalFd`], see [`PartMut`]).
//!
//! ```
//! use interop::{Bridge, Options};
//!
//! let platform = platform::select()?;
//! let bridge = Bridge::open(&platform, &Options::default())?;
//! let mut data = bridge.alloc::<f32>(1024)?;
//! data.upload(&[1.5; 1024])?;
//!
//! let add = bridge.programs().get(
//!     "__kernel void add(__global float *x) { x[get_global_id(0)] += 1.0f; }", "")?.kernel("add")?;
//! let twice = hip::rtc::Program::new(
//!     "extern \"C\" __global__ void twice(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f; }")
//!     .compile(bridge.hip_device())?.function("twice")?;
//! let (queue, stream) = (bridge.queue()?, bridge.stream()?);
//! let before = bridge.meter().snapshot();
//!
//! // SAFETY: the kernels take one float pointer and touch 1024 floats.
//! unsafe {
//!     add.launch(&queue, clmgr::NdRange::d1(1024), &[data.cl_mut(&queue)?.arg()])?;
//!     twice.launch(&stream, hip::LaunchConfig::linear(1024, 256)?, &[&data.hip_mut(&stream)?.slice_mut()])?;
//! }
//! let mut result = [0.0; 1024];
//! data.download(&mut result)?;
//! assert_eq!(result, [5.0; 1024]);
//! assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # rocBLAS and rocSOLVER
//!
//! The memory of a [`rocblas::Matrix`] and its like can be `&Shared`, `&Part` or `&PartMut` to be read, `&mut Shared` or
//! `&mut PartMut` to be written. The call takes the guards that it needs on the handle's stream, checks, and queues the
//! library's call. It does not wait except where the hand-off does, later users of the buffers on either API come after
//! it, and in the steady state it allocates nothing. If a guard is refused, the error holds this crate's own, which `?`
//! gives back: a [`rocblas::Error`] converts into an [`Error`].
//!
//! One buffer may be several inputs, which makes `A * A^H` of one buffer. An output never shares a byte with another
//! operand: a shared buffer is borrowed exclusively for it, and memory that was adopted twice is detected by its
//! addresses ([`rocblas::Error::OperandsOverlap`]). The words and addresses that the libraries need are counted as
//! [`Category::Control`].
//!
//! ```
//! # use interop::{Bridge, Options};
//! use num_complex::Complex;
//! use rocblas::{Handle, Matrix, Op};
//!
//! # let bridge = Bridge::open(&platform::select()?, &Options::default())?;
//! let one = Complex::new(1.0_f32, 0.0);
//! let blas = Handle::new(&bridge.blas()?, &bridge.stream()?)?;
//! let (mut a, mut c) = (bridge.alloc::<Complex<f32>>(6)?, bridge.alloc::<Complex<f32>>(4)?);
//! a.upload(&[one; 6])?;
//! // C = A * A^H of a 2 x 3 matrix.
//! let input = Matrix::new(&a, 2, 3, 2);
//! blas.gemm(Op::None, Op::ConjTranspose, one, input, input, 0.0 * one, Matrix::new(&mut c, 2, 2, 2))?;
//! let mut product = [one; 4];
//! c.download(&mut product)?;
//! assert_eq!(product, [Complex::new(3.0, 0.0); 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The layers, from the bottom up. A module uses only those above it in this table.
//
// | module | what it owns |
// |---|---|
// | `values` | names of routes, grades and the like, and what is found about them |
// | `error` | what can go wrong |
// | `meter` | counts copies at the function tables of both APIs |
// | `core` | both APIs' objects, and what failed, for all layers above |
// | `access` | who uses which bytes, and who waits for whom |
// | `backing` | the memory behind a buffer, a file for each route |
// | `handoff` | how work of one API is put after work of the other, a file for each grade |
// | `memory` | `Shared` buffers, their parts and guards |
// | `bridge` | pairs devices, proves routes and grades, makes and adopts buffers |
// | `stream_program` | OpenCL kernels on HIP streams |
// | `pipeline`, `peers`, `process`, `dlpack`, `vulkan` | what is built on a bridge and its buffers |
// | `world` | the processes of one start, and what they give each other; knows no bridge |
// | `diagnose` | trials and measurements of all that |

mod access;
mod backing;
mod bridge;
mod core;
mod diagnose;
pub mod dlpack;
mod error;
mod handoff;
mod memory;
mod meter;
mod peers;
pub mod pipeline;
mod process;
mod stream_program;
mod values;
#[cfg(feature = "vulkan")]
pub mod vulkan;
pub mod world;

pub use {clmgr, clmgr_fft, hip, platform, rccl, rocblas};

pub use bridge::{Bridge, Bridges, FirstCall, ForeignObjects, NativeHandles, Options};
pub use diagnose::{
    Allocation, AllocationTrial, CarrierTrial, Extent, Figures, GradeTrial, HostPtrProof, Step, StreamTrial, Trial,
    UnknownAllocation, Whereabouts, Witness, measure,
};
pub use error::{Code, Error, PeerError, Process, Result};
pub use memory::{ClGuard, ClGuardMut, ClRange, HipGuard, HipGuardMut, MemoryFacts, Part, PartMut, Shared};
pub use meter::{CallCount, Category, Counts, Meter};
pub use peers::{Peer, PeerPath, PeerReport};
pub use pipeline::{OnError, Pipeline, Slot, StageError};
pub use process::{ExportedFd, Joint, Link, LinkEnd, Listener, NotExported};
pub use stream_program::{StreamArg, StreamFft, StreamKernel, StreamProgram};
pub use values::{
    BridgeReport, Carrier, Direction, Failover, Grade, GradeReport, Mechanisms, Pairing, Policy, Residency, Route,
    RouteReport, UnknownCarrier, UnknownGrade, UnknownRoute,
};
