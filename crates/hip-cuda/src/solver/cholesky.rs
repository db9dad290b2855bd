//! Cholesky factors, what is solved with them, and the inverse from them.

use std::ffi::{c_int, c_uint};

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_int, rocblas_status as Status, rocblas_stride};

use super::operand::{Operand, batch_size, check_sizes};
use super::scalar::{Scalar, slots};
use super::{blocked, diagonal};
use crate::blas::convert::Argument;
use crate::blas::cusolver::{check, library, solver, typed};
use crate::blas::handle::{Handle, Raw};
use crate::blas::scratch::{Scratch, clear};
use crate::blas::{Result, entry};
use crate::cuda::Symbol;

/// A batch of symmetric or Hermitian matrices, of which one triangle counts.
struct Triangles<T> {
    uplo: rocblas_fill,
    n: rocblas_int,
    a: Operand<T>,
    lda: rocblas_int,
    batch: usize,
}

impl<T: Scalar> Triangles<T> {
    /// The triangle in cuBLAS' numbers; `full` is no triangle.
    fn triangle(&self) -> Result<c_uint> {
        match self.uplo {
            rocblas_fill::rocblas_fill_full => Err(Status::rocblas_status_invalid_value),
            uplo => uplo.cuda(),
        }
    }

    /// Checks the arguments of a routine that works in place; `None` if there is nothing left to do.
    ///
    /// # Safety
    /// As [`Triangles::factor`].
    unsafe fn together(&self, handle: &Handle, info: *mut rocblas_int) -> Result<Option<blocked::Batch<'_, T>>> {
        check_sizes(&[self.n], &[(self.lda, self.n)])?;
        self.triangle()?;
        if self.batch == 0 {
            return Ok(None);
        }
        if info.is_null() || (self.n > 0 && self.a.has_null()) {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        if self.n == 0 {
            // SAFETY: the caller's promise: one number for each matrix.
            unsafe { clear(handle, info, self.batch) }?;
            return Ok(None);
        }
        Ok(Some(blocked::Batch {
            upper: self.uplo == rocblas_fill::rocblas_fill_upper,
            n: self.n,
            a: &self.a,
            lda: self.lda,
            count: self.batch,
        }))
    }

    /// Runs a routine of the shape of potrf, one matrix after another: with work space, and one `info` for each matrix,
    /// which names the first zero of the diagonal where `zeros` are looked for.
    ///
    /// # Safety
    /// The matrices and `info` are valid device memory, and neither the matrices nor the batch are empty.
    unsafe fn in_place(
        &self,
        handle: &Handle,
        names: (&'static Symbol, &'static Symbol),
        title: &'static str,
        zeros: bool,
        info: *mut rocblas_int,
    ) -> Result {
        let triangle = self.triangle()?;
        handle.begin()?;
        let raw = solver(handle)?;
        let size = typed!(library()?, names.0, fn(Raw, c_uint, c_int, *mut T, c_int, *mut c_int));
        let run = typed!(
            library()?,
            names.1,
            fn(Raw, c_uint, c_int, *mut T, c_int, *mut T, c_int, *mut c_int)
        );
        let mut len = 0;
        // SAFETY: writes one size to the address given.
        let code = unsafe { size(raw, triangle, self.n, self.a.at(0), self.lda, &mut len) };
        check(code, title)?;
        let work = Scratch::<T>::new(handle, len.unsigned_abs() as usize)?;
        for index in 0..self.batch {
            let (a, info) = (self.a.at(index), info.wrapping_add(index));
            // SAFETY: the caller's promise.
            let zero = zeros.then(|| unsafe { diagonal::first_zero(handle, self.n, a, self.lda) });
            let zero = zero.transpose()?;
            // SAFETY: the caller's promise, and work space of the size that was asked for.
            let code = unsafe { run(raw, triangle, self.n, a, self.lda, work.at(), len, info) };
            check(code, title)?;
            if let Some(zero) = zero {
                // SAFETY: one number each.
                unsafe { zero.copy_to(info, 1) }?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// The matrices and `info` are valid device memory.
    unsafe fn factor(&self, handle: &Handle, info: *mut rocblas_int) -> Result {
        let names = T::names();
        // SAFETY: the caller's promise.
        unsafe {
            let Some(batch) = self.together(handle, info)? else {
                return Ok(());
            };
            if let Some(kernels) = batch.kernels(handle)? {
                return batch.factor(handle, kernels, info);
            }
            self.in_place(
                handle,
                (&names.potrf_size, &names.potrf),
                "cusolverDn potrf",
                false,
                info,
            )
        }
    }

    /// cuSOLVER does not check its divisors: this crate sets a singular factor's `info`, and cuSOLVER leaves such a
    /// matrix full of infinities.
    ///
    /// # Safety
    /// As [`Triangles::factor`].
    unsafe fn invert(&self, handle: &Handle, info: *mut rocblas_int) -> Result {
        let names = T::names();
        // SAFETY: the caller's promise.
        unsafe {
            let Some(batch) = self.together(handle, info)? else {
                return Ok(());
            };
            if let Some(kernels) = batch.kernels(handle)? {
                return batch.invert(handle, kernels, info);
            }
            self.in_place(
                handle,
                (&names.potri_size, &names.potri),
                "cusolverDn potri",
                true,
                info,
            )
        }
    }

    /// Solves for the right-hand sides of those matrices that `wanted` names.
    ///
    /// # Safety
    /// The matrices hold factors; all is valid device memory.
    unsafe fn solve(
        &self,
        handle: &Handle,
        nrhs: rocblas_int,
        b: &Operand<T>,
        ldb: rocblas_int,
        wanted: impl Fn(usize) -> bool,
    ) -> Result {
        check_sizes(&[self.n, nrhs], &[(self.lda, self.n), (ldb, self.n)])?;
        let triangle = self.triangle()?;
        if self.batch == 0 || self.n == 0 || nrhs == 0 {
            return Ok(());
        }
        if self.a.has_null() || b.has_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        handle.begin()?;
        let raw = solver(handle)?;
        let run = typed!(
            library()?,
            T::names().potrs,
            fn(Raw, c_uint, c_int, c_int, *const T, c_int, *mut T, c_int, *mut c_int)
        );
        // cuSOLVER reports bad arguments there; rocSOLVER has no such place.
        let unused = Scratch::<c_int>::new(handle, 1)?;
        for index in (0..self.batch).filter(|index| wanted(*index)) {
            // SAFETY: the caller's promise.
            let code = unsafe {
                run(
                    raw,
                    triangle,
                    self.n,
                    nrhs,
                    self.a.at(index),
                    self.lda,
                    b.at(index),
                    ldb,
                    unused.at(),
                )
            };
            check(code, "cusolverDn potrs")?;
        }
        Ok(())
    }

    /// Factors, then solves where there is a solution; B is untouched elsewhere, as rocSOLVER leaves it. That needs
    /// `info` on the host, so this waits for the factors.
    ///
    /// # Safety
    /// As [`Triangles::solve`].
    unsafe fn factor_and_solve(
        &self,
        handle: &Handle,
        nrhs: rocblas_int,
        b: &Operand<T>,
        ldb: rocblas_int,
        info: *mut rocblas_int,
    ) -> Result {
        check_sizes(&[self.n, nrhs], &[(self.lda, self.n), (ldb, self.n)])?;
        // Without cuSOLVER nothing is solved, and then nothing is to be factored.
        solver(handle)?;
        // SAFETY: the caller's promise.
        unsafe {
            self.factor(handle, info)?;
            if self.batch == 0 {
                return Ok(());
            }
            let found = handle.read(info.cast_const(), self.batch)?;
            self.solve(handle, nrhs, b, ldb, |index| found[index] == 0)
        }
    }
}

/// Defines the plain, strided and listed form of a routine that works in place and reports `info`.
macro_rules! in_place {
    ($($method:ident: $plain:ident $strided:ident $listed:ident;)*) => {
        $(
            unsafe extern "C" fn $plain<T: Scalar>(
                handle: rocblas_handle, uplo: rocblas_fill, n: rocblas_int, a: *mut T, lda: rocblas_int, info: *mut rocblas_int,
            ) -> Status {
                entry(|| {
                    let matrices = Triangles { uplo, n, a: Operand::one(a), lda, batch: 1 };
                    // SAFETY: as the C caller promises.
                    unsafe { matrices.$method(Handle::of(handle)?, info) }
                })
            }

            #[allow(clippy::too_many_arguments, reason = "C function")]
            unsafe extern "C" fn $strided<T: Scalar>(
                handle: rocblas_handle, uplo: rocblas_fill, n: rocblas_int, a: *mut T, lda: rocblas_int,
                stride: rocblas_stride, info: *mut rocblas_int, batch: rocblas_int,
            ) -> Status {
                entry(|| {
                    let batch = batch_size(batch)?;
                    let matrices = Triangles { uplo, n, a: Operand::Strided(a, stride), lda, batch };
                    // SAFETY: as the C caller promises.
                    unsafe { matrices.$method(Handle::of(handle)?, info) }
                })
            }

            unsafe extern "C" fn $listed<T: Scalar>(
                handle: rocblas_handle, uplo: rocblas_fill, n: rocblas_int, a: *const *mut T, lda: rocblas_int,
                info: *mut rocblas_int, batch: rocblas_int,
            ) -> Status {
                entry(|| {
                    // SAFETY: as the C caller promises.
                    unsafe {
                        let handle = Handle::of(handle)?;
                        let a = Operand::listed(handle, a, batch)?;
                        Triangles { uplo, n, a, lda, batch: batch_size(batch)? }.$method(handle, info)
                    }
                })
            }
        )*
    };
}

in_place! {
    factor: potrf potrf_strided potrf_listed;
    invert: potri potri_strided potri_listed;
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn potrs<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *mut T,
    lda: rocblas_int,
    b: *mut T,
    ldb: rocblas_int,
) -> Status {
    entry(|| {
        let matrices = Triangles {
            uplo,
            n,
            a: Operand::one(a),
            lda,
            batch: 1,
        };
        // SAFETY: as the C caller promises.
        unsafe { matrices.solve(Handle::of(handle)?, nrhs, &Operand::one(b), ldb, |_| true) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn potrs_strided<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *mut T,
    lda: rocblas_int,
    stride_a: rocblas_stride,
    b: *mut T,
    ldb: rocblas_int,
    stride_b: rocblas_stride,
    batch: rocblas_int,
) -> Status {
    entry(|| {
        let matrices = Triangles {
            uplo,
            n,
            a: Operand::Strided(a, stride_a),
            lda,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { matrices.solve(Handle::of(handle)?, nrhs, &Operand::Strided(b, stride_b), ldb, |_| true) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn potrs_listed<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *const *mut T,
    lda: rocblas_int,
    b: *const *mut T,
    ldb: rocblas_int,
    batch: rocblas_int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let handle = Handle::of(handle)?;
            let (a, b) = (Operand::listed(handle, a, batch)?, Operand::listed(handle, b, batch)?);
            Triangles {
                uplo,
                n,
                a,
                lda,
                batch: batch_size(batch)?,
            }
            .solve(handle, nrhs, &b, ldb, |_| true)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn posv<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *mut T,
    lda: rocblas_int,
    b: *mut T,
    ldb: rocblas_int,
    info: *mut rocblas_int,
) -> Status {
    entry(|| {
        let matrices = Triangles {
            uplo,
            n,
            a: Operand::one(a),
            lda,
            batch: 1,
        };
        // SAFETY: as the C caller promises.
        unsafe { matrices.factor_and_solve(Handle::of(handle)?, nrhs, &Operand::one(b), ldb, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn posv_strided<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *mut T,
    lda: rocblas_int,
    stride_a: rocblas_stride,
    b: *mut T,
    ldb: rocblas_int,
    stride_b: rocblas_stride,
    info: *mut rocblas_int,
    batch: rocblas_int,
) -> Status {
    entry(|| {
        let matrices = Triangles {
            uplo,
            n,
            a: Operand::Strided(a, stride_a),
            lda,
            batch: batch_size(batch)?,
        };
        let b = Operand::Strided(b, stride_b);
        // SAFETY: as the C caller promises.
        unsafe { matrices.factor_and_solve(Handle::of(handle)?, nrhs, &b, ldb, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn posv_listed<T: Scalar>(
    handle: rocblas_handle,
    uplo: rocblas_fill,
    n: rocblas_int,
    nrhs: rocblas_int,
    a: *const *mut T,
    lda: rocblas_int,
    b: *const *mut T,
    ldb: rocblas_int,
    info: *mut rocblas_int,
    batch: rocblas_int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let handle = Handle::of(handle)?;
            let (a, b) = (Operand::listed(handle, a, batch)?, Operand::listed(handle, b, batch)?);
            Triangles {
                uplo,
                n,
                a,
                lda,
                batch: batch_size(batch)?,
            }
            .factor_and_solve(handle, nrhs, &b, ldb, info)
        }
    })
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocsolver_sys::Api) {
    slots! { api:
        rocsolver_spotrf rocsolver_dpotrf rocsolver_cpotrf rocsolver_zpotrf = potrf;
        rocsolver_spotrf_strided_batched rocsolver_dpotrf_strided_batched rocsolver_cpotrf_strided_batched rocsolver_zpotrf_strided_batched = potrf_strided;
        rocsolver_spotrf_batched rocsolver_dpotrf_batched rocsolver_cpotrf_batched rocsolver_zpotrf_batched = potrf_listed;
        rocsolver_spotri rocsolver_dpotri rocsolver_cpotri rocsolver_zpotri = potri;
        rocsolver_spotri_strided_batched rocsolver_dpotri_strided_batched rocsolver_cpotri_strided_batched rocsolver_zpotri_strided_batched = potri_strided;
        rocsolver_spotri_batched rocsolver_dpotri_batched rocsolver_cpotri_batched rocsolver_zpotri_batched = potri_listed;
        rocsolver_spotrs rocsolver_dpotrs rocsolver_cpotrs rocsolver_zpotrs = potrs;
        rocsolver_spotrs_strided_batched rocsolver_dpotrs_strided_batched rocsolver_cpotrs_strided_batched rocsolver_zpotrs_strided_batched = potrs_strided;
        rocsolver_spotrs_batched rocsolver_dpotrs_batched rocsolver_cpotrs_batched rocsolver_zpotrs_batched = potrs_listed;
        rocsolver_sposv rocsolver_dposv rocsolver_cposv rocsolver_zposv = posv;
        rocsolver_sposv_strided_batched rocsolver_dposv_strided_batched rocsolver_cposv_strided_batched rocsolver_zposv_strided_batched = posv_strided;
        rocsolver_sposv_batched rocsolver_dposv_batched rocsolver_cposv_batched rocsolver_zposv_batched = posv_listed;
    }
}
