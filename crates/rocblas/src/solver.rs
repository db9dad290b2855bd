//! Cholesky factorisation and inverse on rocSOLVER.
//!
//! Whether a matrix could be factorised is only known on the device: the C functions return success for a singular matrix, and write
//! what happened to an integer in device memory. Here each call returns an [`Info`] that owns this integer, and
//! [`Info::check`] turns it into a result.
//!
//! ```
//! # use std::sync::Arc;
//! # // SAFETY: all tables come from one platform.
//! # let (runtime, library) = unsafe {
//! #     (
//! #         hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
//! #         rocblas::Library::from_tables(
//! #             Arc::new(hip_host::rocblas_api()),
//! #             Some(Arc::new(hip_host::rocsolver_api())),
//! #         ),
//! #     )
//! # };
//! # let device = runtime.device(0)?;
//! # let stream = device.stream()?;
//! use rocblas::{Fill, MatrixMut, solver};
//!
//! let blas = rocblas::Handle::new(&library, &stream)?;
//! // 4 2
//! // 2 2
//! let mut a = device.alloc_from(&stream, &[4.0, 2.0, 2.0, 2.0_f32])?;
//! let mut matrix = MatrixMut::new(a.on_mut(&stream)?, 2, 2, 2)?;
//! let factorised = solver::potrf(&blas, Fill::Lower, matrix.reborrow())?;
//! let inverted = solver::potri(&blas, Fill::Lower, matrix)?;
//! factorised.check()?;
//! inverted.check()?;
//!
//! let mut inverse = [0.0; 4];
//! a.copy_to_slice(&stream, &mut inverse)?;
//! // Only the lower triangle was written.
//! let expected = [0.5, -0.5, 1.0];
//! assert!([inverse[0], inverse[1], inverse[3]].iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-6));
//! # Ok::<(), rocblas::Error>(())
//! ```

mod info;

pub(crate) use info::InfoPool;
use info::Meaning;
pub use info::{Failure, Info};

use crate::call::{check, slot};
use crate::gemm::shape;
use crate::scalar::sealed::{Cholesky, CholeskyStridedBatched, Slot};
use crate::size::{int, stride};
use crate::{BatchMut, Error, Fill, Handle, MatrixMut, Result, Scalar};

/// The Cholesky factor of the Hermitian positive-definite matrix whose triangle `fill` is in `a`, in its place: `U` with
/// `U^H * U = A` for [`Fill::Upper`], `L` with `L * L^H = A` for [`Fill::Lower`]. The other triangle is not touched.
///
/// # Errors
///
/// `a` is not square or was taken for another stream, there is no rocSOLVER, or it refused the call. That the matrix is not positive
/// definite comes from [`Info::check`].
#[doc(alias(
    "rocsolver_spotrf",
    "rocsolver_dpotrf",
    "rocsolver_cpotrf",
    "rocsolver_zpotrf",
    "Cholesky"
))]
pub fn potrf<T: Scalar>(handle: &Handle, fill: Fill, a: MatrixMut<'_, T>) -> Result<Info> {
    cholesky(
        handle,
        "potrf",
        T::potrf,
        Meaning::NotPositiveDefinite,
        fill,
        a,
    )
}

/// The inverse of a matrix from its Cholesky factor, as [`potrf`] left it in the triangle `fill` of `a`, in its place. The other
/// triangle is not touched.
///
/// # Errors
///
/// As [`potrf`]. That the matrix is singular comes from [`Info::check`]; `a` has no meaning then.
#[doc(alias(
    "rocsolver_spotri",
    "rocsolver_dpotri",
    "rocsolver_cpotri",
    "rocsolver_zpotri"
))]
pub fn potri<T: Scalar>(handle: &Handle, fill: Fill, a: MatrixMut<'_, T>) -> Result<Info> {
    cholesky(handle, "potri", T::potri, Meaning::Singular, fill, a)
}

/// [`potrf`] for every matrix of a batch.
///
/// # Errors
///
/// As [`potrf`].
#[doc(alias("rocsolver_cpotrf_strided_batched", "rocsolver_zpotrf_strided_batched"))]
pub fn potrf_strided_batched<T: Scalar>(
    handle: &Handle,
    fill: Fill,
    a: BatchMut<'_, T>,
) -> Result<Info> {
    let call = "potrf_strided_batched";
    cholesky_strided_batched(
        handle,
        call,
        T::potrf_strided_batched,
        Meaning::NotPositiveDefinite,
        fill,
        a,
    )
}

/// [`potri`] for every matrix of a batch.
///
/// # Errors
///
/// As [`potri`].
#[doc(alias("rocsolver_cpotri_strided_batched", "rocsolver_zpotri_strided_batched"))]
pub fn potri_strided_batched<T: Scalar>(
    handle: &Handle,
    fill: Fill,
    a: BatchMut<'_, T>,
) -> Result<Info> {
    let call = "potri_strided_batched";
    cholesky_strided_batched(
        handle,
        call,
        T::potri_strided_batched,
        Meaning::Singular,
        fill,
        a,
    )
}

fn cholesky<T: Scalar>(
    handle: &Handle,
    call: &'static str,
    function: fn(&rocsolver_sys::Api) -> Slot<Cholesky<T::Raw>>,
    meaning: Meaning,
    fill: Fill,
    mut a: MatrixMut<'_, T>,
) -> Result<Info> {
    let api = handle
        .library()
        .solver_api()
        .ok_or(Error::NoSolver { call })?;
    handle.check_stream(call, "a", a.data.stream())?;
    let (n, ld) = (a.layout.rows, a.layout.ld);
    if a.layout.cols != n {
        return Err(shape(call, "a", a.layout, n, n));
    }
    let mut info = handle
        .infos
        .lease(handle.stream(), meaning, usize::from(n > 0))?;
    if n == 0 {
        return Ok(info);
    }
    let (name, function) = function(api);
    let function = slot(function, name)?;
    let address = info.address()?;
    handle.stream().device().make_current()?;
    // SAFETY: the handle is alive. `a` has n x n elements with this leading dimension, checked when it was made, is exclusive
    // and may be used on the handle's stream, as may the integer of `info`, which lives until that stream is past this call.
    let status = unsafe {
        function(
            handle.raw(),
            fill.raw(),
            int("n", n)?,
            a.data.as_mut_ptr().cast(),
            int("lda", ld)?,
            address,
        )
    };
    check(status, || format!("{name}({fill:?}, n {n}, lda {ld})"))?;
    Ok(info)
}

fn cholesky_strided_batched<T: Scalar>(
    handle: &Handle,
    call: &'static str,
    function: fn(&rocsolver_sys::Api) -> Slot<CholeskyStridedBatched<T::Raw>>,
    meaning: Meaning,
    fill: Fill,
    mut a: BatchMut<'_, T>,
) -> Result<Info> {
    let api = handle
        .library()
        .solver_api()
        .ok_or(Error::NoSolver { call })?;
    handle.check_stream(call, "a", a.data.stream())?;
    let (n, ld, count) = (a.layout.rows, a.layout.ld, a.count);
    if a.layout.cols != n {
        return Err(shape(call, "a", a.layout, n, n));
    }
    let mut info = handle
        .infos
        .lease(handle.stream(), meaning, if n == 0 { 0 } else { count })?;
    if n == 0 || count == 0 {
        return Ok(info);
    }
    let (name, function) = function(api);
    let function = slot(function, name)?;
    let address = info.address()?;
    handle.stream().device().make_current()?;
    // SAFETY: as for one matrix; `info` has an integer for each of the `count` matrices, which share no element.
    let status = unsafe {
        function(
            handle.raw(),
            fill.raw(),
            int("n", n)?,
            a.data.as_mut_ptr().cast(),
            int("lda", ld)?,
            stride(a.stride)?,
            address,
            int("batch count", count)?,
        )
    };
    check(status, || {
        format!(
            "{name}({fill:?}, n {n}, lda {ld}, stride {}, count {count})",
            a.stride
        )
    })?;
    Ok(info)
}
