//! Safe rocBLAS and rocSOLVER.
//!
//! | item | what | C API |
//! |---|---|---|
//! | [`Library`] | the function tables of rocBLAS and rocSOLVER | |
//! | [`Handle`] | calls on one [`hip::Stream`] | `rocblas_handle` |
//! | [`Matrix`], [`MatrixMut`] | a column-major matrix in device memory | pointer, rows, columns, leading dimension |
//! | [`Batch`], [`BatchMut`] | equal matrices at a stride | `*_strided_batched` |
//! | [`Handle::gemm`], [`Handle::gemm_strided_batched`], [`Handle::herk`] | products | `rocblas_?gemm`, `rocblas_?herk` |
//! | [`solver`] | linear systems, LU and Cholesky factors, inverses | `rocsolver_?getrf`, `rocsolver_?potrf`, … |
//!
//! The feature `ndarray` (off by default) adds `DeviceMatrix` and copies between matrices and arrays of that crate.
//!
//! # Conventions
//!
//! - Matrices are column-major: element (i, j) is at `i + j * ld`. Lengths, leading dimensions and strides are in elements.
//! - `f32`, `f64`, `Complex<f32>` and `Complex<f64>` are the [`Scalar`]s: the letters s, d, c and z of the C names.
//! - `alpha` and `beta` are host values (pointer mode *host*), read before a call returns. With `beta` zero the output is not
//!   read and may hold anything.
//! - Every call is asynchronous on the handle's stream. A matrix has to be taken for that stream
//!   ([`hip::DeviceBuffer::on`]); another one is [`Error::WrongStream`].
//! - Every shape is checked before the library is called. The output cannot overlap an input: it is borrowed exclusively.
//! - Atomics are not allowed, so equal calls give equal bits.
//!
//! # What it does not do
//!
//! Sizes above 2^31 - 1 are refused ([`Error::TooLarge`]); the library's `_64` functions are not used. Batches of pointers, mixed
//! precision (`gemm_ex`) and level 1 and 2 are not wrapped; [`Handle::raw`] and [`Library::api`] lead to them.
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
//!         rocblas::Library::from_tables(Arc::new(hip_host::rocblas_api()), None),
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
//! use rocblas::{Matrix, MatrixMut, Op};
//! blas.gemm(
//!     Op::None,
//!     Op::None,
//!     1.0,
//!     Matrix::new(a.on(&stream)?, 2, 3, 2)?,
//!     Matrix::new(b.on(&stream)?, 3, 1, 3)?,
//!     0.0,
//!     MatrixMut::new(c.on_mut(&stream)?, 2, 1, 2)?,
//! )?;
//!
//! let mut product = [0.0; 2];
//! c.copy_to_slice(&stream, &mut product)?;
//! assert_eq!(product, [321.0, 654.0]);
//! # Ok::<(), rocblas::Error>(())
//! ```

mod batch;
mod call;
mod error;
mod gemm;
mod handle;
mod herk;
mod library;
mod matrix;
#[cfg(feature = "ndarray")]
pub mod ndarray;
mod option;
mod scalar;
mod size;
pub mod solver;

pub use batch::{Batch, BatchMut};
pub use error::{Error, Result};
pub use handle::Handle;
pub use library::Library;
pub use matrix::{Matrix, MatrixMut};
#[cfg(feature = "ndarray")]
pub use ndarray::DeviceMatrix;
pub use option::{Fill, Op};
pub use scalar::{ComplexScalar, Scalar};
