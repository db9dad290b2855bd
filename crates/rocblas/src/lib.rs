//! Safe rocBLAS and rocSOLVER.
//!
//! | item | what | C API |
//! |---|---|---|
//! | [`Library`] | the function tables of rocBLAS and rocSOLVER | |
//! | [`Handle`] | calls on one [`hip::Stream`] | `rocblas_handle` |
//! | [`Vector`] | a vector in some memory | pointer, length, increment |
//! | [`Matrix`] | a column-major matrix in some memory | pointer, rows, columns, leading dimension |
//! | [`Batch`] | equal matrices at a stride | `*_strided_batched` |
//! | [`PointerArray`], [`Pointers`] | equal matrices anywhere | `*_batched` |
//! | [`Factor`] | `alpha` and `beta`: a host value or a number in device memory, [`OnDevice`] | pointer mode |
//! | [`Handle::axpy`], [`scal`](Handle::scal), [`copy`](Handle::copy), [`swap`](Handle::swap) | level 1 | `rocblas_?axpy` and so on |
//! | [`Handle::dot`], [`dotc`](Handle::dotc), [`nrm2`](Handle::nrm2), [`asum`](Handle::asum), and each with `_into` | reductions, to the host or to device memory | `rocblas_?dot?`, `rocblas_*nrm2` |
//! | [`Handle::gemv`], [`ger`](Handle::ger), [`gerc`](Handle::gerc) | level 2 | `rocblas_?gemv`, `rocblas_?ger?` |
//! | [`Handle::gemm`], [`gemm_strided_batched`](Handle::gemm_strided_batched), [`gemm_batched`](Handle::gemm_batched) | products | `rocblas_?gemm*` |
//! | [`Handle::gemm_ex`], [`gemm_strided_batched_ex`](Handle::gemm_strided_batched_ex), [`gemm_batched_ex`](Handle::gemm_batched_ex), and each with `_into` | products of [narrow elements](GemmInput) | `rocblas_gemm_*ex` |
//! | [`Handle::syrk`], [`herk`](Handle::herk) | symmetric and Hermitian products | `rocblas_?syrk`, `rocblas_?herk` |
//! | [`Handle::trsm`], [`trmm`](Handle::trmm), [`trmm_in_place`](Handle::trmm_in_place) | [triangular](Triangle) systems and products | `rocblas_?trsm`, `rocblas_?trmm` |
//! | [`Handle::set_workspace`], [`workspace_needed`](Handle::workspace_needed) | memory for intermediate results | `rocblas_set_workspace` |
//! | [`solver`] | linear systems, LU and Cholesky factors, inverses | `rocsolver_?getrf`, `rocsolver_?potrf`, … |
//!
//! The feature `tracing` (on by default) has an event for every call, of level *trace*, and higher levels for what
//! cannot be returned to a caller. `half` (on by default) brings elements of 16 bits. `ndarray` (off by default) adds
//! `DeviceMatrix` and copies between matrices and arrays of that crate.
//!
//! # Conventions
//!
//! - Matrices are column-major: element (i, j) is at `i + j * ld`. Lengths, leading dimensions, increments and strides
//!   are in elements.
//! - `f32`, `f64`, `Complex<f32>` and `Complex<f64>` are the [`Scalar`]s: the letters s, d, c and z of the C names.
//! - `alpha` and `beta` are host values, read before a call returns, or device memory: see [`Factor`]. With `beta` zero
//!   the output is not read and may hold anything.
//! - Calls are asynchronous on the handle's stream, except for reductions whose result goes to the host.
//! - Every shape is checked before the library is called.
//! - Sizes are 64-bit. Where one is above 2^31 - 1 the library's `_64` function is called, which came with ROCm 6.1
//!   (level 1), 6.2 (level 2 and `trsm`) and 6.3 (level 3); without it that call is [`Error::No64Bit`].
//!   rocSOLVER indexes each matrix in 32 bits: [`solver`] refuses one that spans more than 2^31 - 1 elements with
//!   [`Error::TooLarge`], where rocSOLVER itself would write outside of it.
//! - Atomics are not allowed, so equal calls yield equal bits, unless [`Handle::allow_atomics`] allows them.
//!
//! # Memory is taken by the call
//!
//! A [`Matrix`], [`Batch`], [`Vector`] or [`Pointers`] says where elements lie in some memory. The memory is whatever is a
//! [`hip::DeviceMemory`], or [`hip::DeviceMemoryMut`] for an output:
//!
//! | memory | given as |
//! |---|---|
//! | a buffer of HIP: device memory, page-locked, managed | `&buffer`, `&mut buffer` |
//! | a slice that was taken for the handle's stream; one for another stream is [`Error::WrongStream`] | by value, or `&mut slice` |
//! | memory that OpenCL shares, with the crate `interop` | `&shared`, `&mut shared`, a part of it by reference |
//!
//! Each call first checks that the shapes fit each other. Then it takes its operands' memory on the handle's stream, in
//! the order of the arguments, and checks that each operand fits its memory and that no output shares a byte with another
//! operand ([`Error::OperandsOverlap`]; two inputs may be one buffer). Only then it queues the library's call. If the
//! memory of a later operand is refused, that of the earlier ones was taken for nothing, which does no harm. In the steady
//! state a call allocates nothing.
//!
//! # What it does not do
//!
//! It does not choose kernels (solution indices, flags). `FUNCTIONS.md` lists every C function: wrapped, raw only
//! ([`Handle::raw`], [`Library::api`]), or out of scope and why.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! // SAFETY: all tables come from the same platform.
//! let (runtime, library) = unsafe {
//!     (
//!         hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
//!         rocblas::Library::from_tables(Arc::new(hip_host_blas::rocblas_api()), None),
//!     )
//! };
//! let device = runtime.device(0)?;
//! let stream = device.stream()?;
//! let blas = rocblas::Handle::new(&library, &stream)?;
//!
//! // a is 2 x 3, b is 3 x 1: columns one after the other.
//! let a = device.alloc_from(&stream, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0_f32])?;
//! let b = device.alloc_from(&stream, &[1.0, 10.0, 100.0_f32])?;
//! let mut c = device.alloc::<f32>(2)?;
//!
//! use rocblas::{Matrix, Op};
//! blas.gemm(
//!     Op::None,
//!     Op::None,
//!     1.0,
//!     Matrix::new(&a, 2, 3, 2),
//!     Matrix::new(&b, 3, 1, 3),
//!     0.0,
//!     Matrix::new(&mut c, 2, 1, 2),
//! )?;
//!
//! let mut product = [0.0; 2];
//! c.copy_to_slice(&stream, &mut product)?;
//! assert_eq!(product, [321.0, 654.0]);
//! # Ok::<(), rocblas::Error>(())
//! ```

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The modules from the lowest up: none uses one of a later group.

// A call of the libraries, and how it fails.
mod call;
mod error;
mod library;
mod report;

// What the C functions are, and what they take.
mod element;
mod functions;
mod option;
mod scalar;
mod size;

// A call's handle and operands.
mod handle;
mod operands;
mod routine;

// The calls.
mod gemm;
mod level1;
mod level2;
mod level3;
pub mod solver;

#[cfg(feature = "ndarray")]
pub mod ndarray;

pub use element::{Element, GemmInput};
pub use error::{Error, Result};
pub use handle::Handle;
pub use hip;
pub use library::Library;
#[cfg(feature = "ndarray")]
pub use ndarray::DeviceMatrix;
pub use operands::{Batch, Diag, Factor, Matrix, OnDevice, PointerArray, Pointers, Side, Triangle, Vector};
pub use option::{Fill, Op};
pub use scalar::{ComplexScalar, Scalar};
