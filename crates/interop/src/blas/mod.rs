//! rocBLAS products on shared memory, in stream order after OpenCL's work.
//!
//! | function | what | C API |
//! |---|---|---|
//! | [`gemm`] | `C = alpha * op(A) * op(B) + beta * C` | `rocblas_?gemm` |
//! | [`gemm_ex`] | the same for elements narrower than the compute type | `rocblas_gemm_ex` |
//! | [`gemm_strided_batched`] | the same of each matrix of batches at a stride | `rocblas_?gemm_strided_batched` |
//! | [`gemm_batched`] | the same of matrices at any offsets of a buffer | `rocblas_?gemm_batched` |
//! | [`herk`] | one triangle of `C = alpha * op(A) * op(A)^H + beta * C` | `rocblas_?herk` |
//!
//! Each call takes the guards that it needs (for reading the inputs, for writing the output) on the handle's stream,
//! checks, and queues the library's call. It does not wait except where the hand-off does, and later users of the
//! buffers, on either API, come after it. In the steady state a call does not allocate.
//!
//! # Matrices
//!
//! A [`Matrix`], [`Batch`] or [`Pointers`] says *where in some memory* matrices lie. It is made before the memory is
//! taken for a stream, so that one call can take all operands; a [`rocblas::Matrix`] is made after that. Matrices are
//! column-major: element (i, j) is at `offset + i + j * ld`; all sizes, offsets, leading dimensions and strides are in
//! elements. The memory is a [`Shared`](crate::Shared) buffer, a [`Part`](crate::Part) of one, or a `hip::DeviceBuffer`
//! that only HIP uses ([`Memory`], [`MemoryMut`]).
//!
//! One buffer may be both inputs, which makes `A * A^H` of one buffer. An output never shares a byte with an input: a
//! shared buffer is borrowed exclusively for it, and memory that was adopted twice is detected by its addresses
//! ([`Error::OperandsOverlap`](crate::Error::OperandsOverlap)).
//!
//! # Errors
//!
//! Sizes that do not fit the memory are [`Error::Operand`](crate::Error::Operand), which names the argument; sizes that
//! do not fit each other, and what the library refuses, are [`Error::Blas`](crate::Error::Blas). The library is not
//! called then. If taking the memory fails, the error is the guard's. The argument order and the rules are those of
//! `rocblas-functions.h` (rocBLAS, library/include/internal).
//!
//! ```
//! # use interop::{Bridge, Options};
//! use interop::blas::{self, Matrix};
//! use num_complex::Complex;
//! use rocblas::Op;
//!
//! # let bridge = Bridge::open(&platform::select()?, &Options::default())?;
//! let one = Complex::new(1.0_f32, 0.0);
//! let handle = rocblas::Handle::new(&bridge.blas()?, &bridge.stream()?)?;
//! let (mut a, mut c) = (bridge.alloc::<Complex<f32>>(6)?, bridge.alloc::<Complex<f32>>(4)?);
//! a.upload(&[one; 6])?;
//! // C = A * A^H of a 2 x 3 matrix.
//! let input = Matrix::new(&a, 2, 3, 2);
//! let output = Matrix::new(&mut c, 2, 2, 2);
//! blas::gemm(&handle, Op::None, Op::ConjTranspose, one, input, input, 0.0 * one, output)?;
//! let mut product = [one; 4];
//! c.download(&mut product)?;
//! assert_eq!(product, [Complex::new(3.0, 0.0); 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apart;
mod batch;
mod herk;
mod matrix;
mod memory;
mod name;
mod pointers;
mod product;

pub(crate) use apart::{Extent, check_apart};
pub use batch::Batch;
pub use herk::herk;
pub use matrix::Matrix;
pub use memory::{Memory, MemoryMut};
pub(crate) use name::Name;
pub use pointers::{Offsets, Pointers};
pub use product::{gemm, gemm_batched, gemm_ex, gemm_strided_batched};
