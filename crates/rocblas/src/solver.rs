//! Linear systems, factorisations and inverses on rocSOLVER.
//!
//! | function | what | C API |
//! |---|---|---|
//! | [`getrf`], [`getrf_npvt`] | `P * L * U` of a general matrix, with and without exchanging rows | `rocsolver_?getrf`, `..._npvt` |
//! | [`getrs`] | solves with these factors | `rocsolver_?getrs` |
//! | [`getri`], [`getri_outofplace`] | the inverse from these factors, in their place or elsewhere | `rocsolver_?getri`, `..._outofplace` |
//! | [`gesv`] | factorises and solves | `rocsolver_?gesv` |
//! | [`potrf`] | the Cholesky factor of a positive-definite matrix | `rocsolver_?potrf` |
//! | [`potrs`], [`potri`], [`posv`] | solves, inverts, factorises and solves with it | `rocsolver_?potrs`, `?potri`, `?posv` |
//! | [`general_inverse`] | the inverse of a general matrix, in its place | `rocsolver_?getrf`, `?getri` |
//! | [`Mirror`], [`hermitian_inverse`] | the triangle that [`potri`] and [`herk`](crate::Handle::herk) do not write; all of the inverse | `rocsolver_?potrf`, `?potri`, a kernel of this crate |
//!
//! Each takes one matrix ([`Matrix`](crate::Matrix)), a batch at a stride ([`Batch`](crate::Batch)) or a batch of
//! pointers ([`Pointers`](crate::Pointers)), for every [`Scalar`](crate::Scalar): the type of the argument chooses the C
//! function ([`Matrices`]). All work in place, in memory that the call takes for writing on the handle's stream.
//!
//! # Hermitian matrices in one triangle
//!
//! [`herk`](crate::Handle::herk), [`potrf`] and [`potri`] read and write one triangle; the other one keeps what it held
//! before. [`hermitian_inverse`] reads one triangle and writes both, [`general_inverse`] reads both. What [`potri`]
//! returns, a [`Triangle`], therefore keeps the memory borrowed until [`Triangle::complete`] has filled it or the caller
//! drops it.
//!
//! # Failures are known later
//!
//! All functions return before the device has done its work. Whether a matrix could be factorised is only known there:
//! the C functions return success for a singular matrix, and write the outcome to an integer in device memory. Here the
//! factors ([`Lu`], [`Cholesky`]) and inverses ([`Info`]) own this integer; their `check` waits and turns it into a
//! result that names the pivot or minor and, in a batch, the matrix.
//!
//! # Factors are values
//!
//! Solvers that use factors take an [`Lu`] or a [`Cholesky`], which only a factorisation of the same memory returns. So
//! an unfactorised matrix is no argument for [`getrs`], and its pivots cannot be those of another matrix. Factors hold
//! the memory that they are in: it stays borrowed, on the stream of the handle, for as long as they live.
//!
//! ```
//! # use std::sync::Arc;
//! # // SAFETY: all tables come from one platform.
//! # let (runtime, library) = unsafe {
//! #     (
//! #         hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
//! #         rocblas::Library::from_tables(
//! #             Arc::new(hip_host_blas::rocblas_api()),
//! #             Some(Arc::new(hip_host_blas::rocsolver_api())),
//! #         ),
//! #     )
//! # };
//! # let device = runtime.device(0)?;
//! # let stream = device.stream()?;
//! use rocblas::{Fill, Matrix, Op, solver};
//!
//! let blas = rocblas::Handle::new(&library, &stream)?;
//! // 0 2
//! // 4 2
//! let mut a = device.alloc_from(&stream, &[0.0, 4.0, 2.0, 2.0_f32])?;
//! let mut b = device.alloc_from(&stream, &[2.0, 6.0_f32])?;
//! let lu = solver::getrf(&blas, Matrix::new(&mut a, 2, 2, 2))?;
//! solver::getrs(&blas, Op::None, &lu, Matrix::new(&mut b, 2, 1, 2))?;
//! // Both are queued; only now the host waits.
//! lu.check()?;
//! let mut x = [0.0; 2];
//! b.copy_to_slice(&stream, &mut x)?;
//! assert_eq!(x, [1.0, 1.0]);
//!
//! // 4 2
//! // 2 2
//! let mut a = device.alloc_from(&stream, &[4.0, 2.0, 2.0, 2.0_f32])?;
//! let factor = solver::potrf(&blas, Fill::Lower, Matrix::new(&mut a, 2, 2, 2))?;
//! solver::potri(&blas, factor)?.check()?;
//! let mut inverse = [0.0; 4];
//! a.copy_to_slice(&stream, &mut inverse)?;
//! // Only the lower triangle was written.
//! let expected = [0.5, -0.5, 1.0];
//! assert!([inverse[0], inverse[1], inverse[3]].iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-6));
//! # Ok::<(), rocblas::Error>(())
//! ```

mod call;
mod cholesky;
mod held;
mod info;
mod inverse;
mod lu;
mod matrices;
mod pivots;

pub use cholesky::{Cholesky, Triangle, posv, potrf, potri, potrs};
pub use info::{Failure, Info};
pub use inverse::{Mirror, general_inverse, hermitian_inverse};
pub use lu::{Lu, gesv, getrf, getrf_npvt, getri, getri_outofplace, getrs};
pub use matrices::{Batched, Matrices, Single, Strided};
pub use pivots::Pivots;
