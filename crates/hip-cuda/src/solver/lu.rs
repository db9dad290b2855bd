//! LU factors, what is solved with them, and the inverse from them.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};
use rocblas_sys::{rocblas_int, rocblas_operation, rocblas_status as Status};

use super::operand::{Operand, batch_size, check_sizes};
use super::scalar::Scalar;
use crate::blas::convert::Argument;
use crate::blas::cusolver::{check, library, solver, typed};
use crate::blas::family::{Place, families};
use crate::blas::handle::{Handle, Raw};
use crate::blas::scratch::{Scratch, clear};
use crate::blas::{Result, from_hip};
use crate::memory::address;

/// A batch of general matrices.
struct General<T> {
    m: rocblas_int,
    n: rocblas_int,
    a: Operand<T>,
    lda: rocblas_int,
    /// The exchanged rows, counted from 1; `None`: no rows are exchanged.
    pivots: Option<Operand<rocblas_int>>,
    batch: usize,
}

impl<T: Scalar> General<T> {
    /// # Safety
    /// As [`Operand::of`].
    unsafe fn of(
        handle: &Handle,
        (m, n): (rocblas_int, rocblas_int),
        (a, lda): (Place<T>, rocblas_int),
        pivots: Option<Place<rocblas_int>>,
        batch: rocblas_int,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (a, pivots) = unsafe {
            let pivots = pivots.map(|pivots| Operand::of(handle, pivots, batch));
            (Operand::of(handle, a, batch)?, pivots.transpose()?)
        };
        let batch = batch_size(batch)?;
        Ok(Self {
            m,
            n,
            a,
            lda,
            pivots,
            batch,
        })
    }

    fn pivots_at(&self, index: usize) -> *mut rocblas_int {
        // Null tells cuSOLVER and cuBLAS that there are none.
        self.pivots
            .as_ref()
            .map_or(std::ptr::null_mut(), |pivots| pivots.at(index))
    }

    fn lacks_a_pointer(&self) -> bool {
        self.a.has_null() || self.pivots.as_ref().is_some_and(Operand::has_null)
    }

    /// # Safety
    /// The matrices, pivots and `info` are valid device memory.
    unsafe fn factor(&self, handle: &Handle, info: *mut rocblas_int) -> Result {
        check_sizes(&[self.m, self.n], &[(self.lda, self.m)])?;
        if self.batch == 0 {
            return Ok(());
        }
        if info.is_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        if self.m == 0 || self.n == 0 {
            // SAFETY: the caller's promise: one number for each matrix.
            return unsafe { clear(handle, info, self.batch) };
        }
        if self.lacks_a_pointer() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        handle.begin()?;
        let raw = solver(handle)?;
        let names = T::names();
        let size = typed!(
            library()?,
            names.getrf_size,
            fn(Raw, c_int, c_int, *mut T, c_int, *mut c_int)
        );
        let run = typed!(
            library()?,
            names.getrf,
            fn(Raw, c_int, c_int, *mut T, c_int, *mut T, *mut c_int, *mut c_int)
        );
        let mut len = 0;
        // SAFETY: writes one size to the address given.
        let code = unsafe { size(raw, self.m, self.n, self.a.at(0), self.lda, &mut len) };
        check(code, "cusolverDn getrf")?;
        let work = Scratch::<T>::new(handle, len.unsigned_abs() as usize)?;
        for index in 0..self.batch {
            // SAFETY: the caller's promise, and work space of the size that was asked for.
            let code = unsafe {
                run(
                    raw,
                    self.m,
                    self.n,
                    self.a.at(index),
                    self.lda,
                    work.at(),
                    self.pivots_at(index),
                    info.wrapping_add(index),
                )
            };
            check(code, "cusolverDn getrf")?;
        }
        Ok(())
    }

    /// Solves for the right-hand sides of those matrices that `wanted` names.
    ///
    /// # Safety
    /// The matrices and pivots hold factors; all is valid device memory.
    unsafe fn solve(
        &self,
        handle: &Handle,
        trans: rocblas_operation,
        nrhs: rocblas_int,
        b: &Operand<T>,
        ldb: rocblas_int,
        wanted: impl Fn(usize) -> bool,
    ) -> Result {
        check_sizes(&[self.n, nrhs], &[(self.lda, self.n), (ldb, self.n)])?;
        let trans = trans.cuda()?;
        if self.batch == 0 || self.n == 0 || nrhs == 0 {
            return Ok(());
        }
        if self.lacks_a_pointer() || b.has_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        handle.begin()?;
        let raw = solver(handle)?;
        let run = typed!(
            library()?,
            T::names().getrs,
            fn(Raw, c_uint, c_int, c_int, *const T, c_int, *const c_int, *mut T, c_int, *mut c_int)
        );
        // cuSOLVER reports bad arguments there; rocSOLVER has no such place.
        let unused = Scratch::<c_int>::new(handle, 1)?;
        for index in (0..self.batch).filter(|index| wanted(*index)) {
            let (a, pivots) = (self.a.at(index), self.pivots_at(index));
            // SAFETY: the caller's promise.
            let code = unsafe {
                run(
                    raw,
                    trans,
                    self.n,
                    nrhs,
                    a,
                    self.lda,
                    pivots,
                    b.at(index),
                    ldb,
                    unused.at(),
                )
            };
            check(code, "cusolverDn getrs")?;
        }
        Ok(())
    }

    /// Factors, then solves where there is a solution; B is untouched elsewhere, as rocSOLVER leaves it. That needs
    /// `info` on the host, so this waits for the factors.
    ///
    /// # Safety
    /// As [`General::solve`].
    unsafe fn factor_and_solve(
        &self,
        handle: &Handle,
        nrhs: rocblas_int,
        b: &Operand<T>,
        ldb: rocblas_int,
        info: *mut rocblas_int,
    ) -> Result {
        check_sizes(&[self.n, nrhs], &[(self.lda, self.n), (ldb, self.n)])?;
        // SAFETY: the caller's promise.
        unsafe {
            self.factor(handle, info)?;
            if self.batch == 0 {
                return Ok(());
            }
            let found = handle.read(info.cast_const(), self.batch)?;
            let none = rocblas_operation::rocblas_operation_none;
            self.solve(handle, none, nrhs, b, ldb, |index| found[index] == 0)
        }
    }

    /// The inverses, into C or, without one, over the factors.
    ///
    /// # Safety
    /// The matrices and pivots hold factors; all is valid device memory, and C overlaps nothing.
    unsafe fn invert(&self, handle: &Handle, c: Option<(&Operand<T>, rocblas_int)>, info: *mut rocblas_int) -> Result {
        check_sizes(&[self.n], &[(self.lda, self.n)])?;
        if let Some((_, ldc)) = c {
            check_sizes(&[], &[(ldc, self.n)])?;
        }
        if self.batch == 0 {
            return Ok(());
        }
        if info.is_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        if self.n == 0 {
            // SAFETY: the caller's promise: one number for each matrix.
            return unsafe { clear(handle, info, self.batch) };
        }
        if self.lacks_a_pointer() || c.is_some_and(|(c, _)| c.has_null()) {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        let driver = handle.begin()?;
        let run = typed!(
            crate::blas::library()?,
            T::names().getri_batched,
            fn(Raw, c_int, *const *const T, c_int, *const c_int, *const *mut T, c_int, *mut c_int, c_int)
        );
        let rows = self.n.unsigned_abs() as usize;
        let own = match c {
            Some(_) => None,
            None => Some(Scratch::<T>::new(handle, rows * rows)?),
        };
        // One matrix at a time: cuBLAS wants the pivots of a batch without gaps.
        let list = Scratch::<u64>::new(handle, 2 * self.batch)?;
        let targets = |index| match (&own, c) {
            (Some(own), _) => (own.at(), self.n),
            (None, Some((c, ldc))) => (c.at(index), ldc),
            (None, None) => unreachable!("one of the two is there"),
        };
        let pairs: Vec<u64> = (0..self.batch)
            .flat_map(|index| [address(self.a.at(index)), address(targets(index).0)])
            .collect();
        // SAFETY: as many numbers as there is room for; pageable host memory is read before the call returns.
        unsafe {
            driver.cuMemcpyAsync(
                address(list.at()),
                address(pairs.as_ptr()),
                size_of_val(pairs.as_slice()),
                handle.stream(),
            )
        }
        .map_err(from_hip)?;
        for index in 0..self.batch {
            let (target, ld) = targets(index);
            let pair = list.at().wrapping_add(2 * index);
            // SAFETY: the caller's promise; the lists hold one address each.
            let code = unsafe {
                run(
                    handle.raw(),
                    self.n,
                    pair.cast(),
                    self.lda,
                    self.pivots_at(index),
                    pair.wrapping_add(1).cast(),
                    ld,
                    info.wrapping_add(index),
                    1,
                )
            };
            crate::blas::check(code, "cublas getriBatched")?;
            if own.is_some() {
                let (from, to) = ((target, rows), (self.a.at(index), self.lda.unsigned_abs() as usize));
                // SAFETY: both are matrices of n rows and columns.
                unsafe { copy_square(handle, rows, from, to) }?;
            }
        }
        Ok(())
    }
}

/// Copies a square matrix, each given by its address and leading dimension.
///
/// # Safety
/// Both are valid device memory.
unsafe fn copy_square<T>(handle: &Handle, n: usize, from: (*mut T, usize), to: (*mut T, usize)) -> Result {
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: address(from.0),
        srcArray: std::ptr::null_mut(),
        srcPitch: from.1 * size_of::<T>(),
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: address(to.0),
        dstArray: std::ptr::null_mut(),
        dstPitch: to.1 * size_of::<T>(),
        WidthInBytes: n * size_of::<T>(),
        Height: n,
    };
    // SAFETY: the caller's promise; the description outlives the call.
    unsafe { handle.begin()?.cuMemcpy2DAsync_v2(&copy, handle.stream()) }.map_err(from_hip)
}

families! {
    /// The slots of this file.
    pub(super) fn fill(rocsolver_sys::Api);

    rocsolver_ [s d c z] [getrf] [plain batched strided_batched]
        (m: I, n: I, a: *mut operand(lda: I), ipiv: *mut pivots, info: *mut I, batch: batch)
        => |h| General::of(h, (m, n), (a, lda), Some(ipiv), batch)?.factor(h, info);
    rocsolver_ [s d c z] [getrf_npvt] [plain batched strided_batched]
        (m: I, n: I, a: *mut operand(lda: I), info: *mut I, batch: batch)
        => |h| General::of(h, (m, n), (a, lda), None, batch)?.factor(h, info);
    rocsolver_ [s d c z] [getrs] [plain batched strided_batched]
        (trans: rocblas_operation, n: I, nrhs: I, a: *mut operand(lda: I), ipiv: *const pivots,
         b: *mut operand(ldb: I), batch: batch)
        => |h| {
            let a = General::of(h, (n, n), (a, lda), Some(ipiv), batch)?;
            a.solve(h, trans, nrhs, &Operand::of(h, b, batch)?, ldb, |_| true)
        };
    rocsolver_ [s d c z] [gesv] [plain batched strided_batched]
        (n: I, nrhs: I, a: *mut operand(lda: I), ipiv: *mut pivots, b: *mut operand(ldb: I), info: *mut I, batch: batch)
        => |h| {
            let a = General::of(h, (n, n), (a, lda), Some(ipiv), batch)?;
            a.factor_and_solve(h, nrhs, &Operand::of(h, b, batch)?, ldb, info)
        };
    rocsolver_ [s d c z] [getri] [plain batched strided_batched]
        (n: I, a: *mut operand(lda: I), ipiv: *mut pivots, info: *mut I, batch: batch)
        => |h| General::of(h, (n, n), (a, lda), Some(ipiv), batch)?.invert(h, None, info);
    rocsolver_ [s d c z] [getri_outofplace] [plain batched strided_batched]
        (n: I, a: *mut operand(lda: I), ipiv: *mut pivots, c: *mut operand(ldc: I), info: *mut I, batch: batch)
        => |h| {
            let a = General::of(h, (n, n), (a, lda), Some(ipiv), batch)?;
            a.invert(h, Some((&Operand::of(h, c, batch)?, ldc)), info)
        };
}
