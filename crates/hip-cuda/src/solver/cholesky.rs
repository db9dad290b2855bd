//! Cholesky factors, what is solved with them, and the inverse from them.

use std::ffi::{c_int, c_uint};

use rocblas_sys::{rocblas_fill, rocblas_int, rocblas_status as Status};

use super::operand::{Operand, batch_size, check_sizes};
use super::scalar::Scalar;
use super::{blocked, diagonal};
use crate::blas::Result;
use crate::blas::convert::Argument;
use crate::blas::cusolver::{check, library, solver, typed};
use crate::blas::family::{Place, families};
use crate::blas::handle::{Handle, Raw};
use crate::blas::scratch::{Scratch, clear};
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
    /// # Safety
    /// As [`Operand::of`].
    unsafe fn of(
        handle: &Handle,
        uplo: rocblas_fill,
        n: rocblas_int,
        (a, lda): (Place<T>, rocblas_int),
        batch: rocblas_int,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let a = unsafe { Operand::of(handle, a, batch) }?;
        let batch = batch_size(batch)?;
        Ok(Self { uplo, n, a, lda, batch })
    }

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

families! {
    /// The slots of this file.
    pub(super) fn fill(rocsolver_sys::Api);

    rocsolver_ [s d c z] [potrf] [plain batched strided_batched]
        (uplo: rocblas_fill, n: I, a: *mut operand(lda: I), info: *mut I, batch: batch)
        => |h| Triangles::of(h, uplo, n, (a, lda), batch)?.factor(h, info);
    rocsolver_ [s d c z] [potri] [plain batched strided_batched]
        (uplo: rocblas_fill, n: I, a: *mut operand(lda: I), info: *mut I, batch: batch)
        => |h| Triangles::of(h, uplo, n, (a, lda), batch)?.invert(h, info);
    rocsolver_ [s d c z] [potrs] [plain batched strided_batched]
        (uplo: rocblas_fill, n: I, nrhs: I, a: *mut operand(lda: I), b: *mut operand(ldb: I), batch: batch)
        => |h| {
            let a = Triangles::of(h, uplo, n, (a, lda), batch)?;
            a.solve(h, nrhs, &Operand::of(h, b, batch)?, ldb, |_| true)
        };
    rocsolver_ [s d c z] [posv] [plain batched strided_batched]
        (uplo: rocblas_fill, n: I, nrhs: I, a: *mut operand(lda: I), b: *mut operand(ldb: I), info: *mut I,
         batch: batch)
        => |h| {
            let a = Triangles::of(h, uplo, n, (a, lda), batch)?;
            a.factor_and_solve(h, nrhs, &Operand::of(h, b, batch)?, ldb, info)
        };
}
