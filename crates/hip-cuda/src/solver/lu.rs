//! LU factors, what is solved with them, and the inverse from them.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_operation, rocblas_status as Status, rocblas_stride};

use super::operand::{Operand, batch_size, check_sizes};
use super::scalar::{Scalar, slots};
use crate::blas::convert::Argument;
use crate::blas::cusolver::{check, library, solver, typed};
use crate::blas::handle::{Handle, Raw};
use crate::blas::scratch::{Scratch, clear};
use crate::blas::{Result, entry, from_hip};
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

type Int = rocblas_int;
type Stride = rocblas_stride;

unsafe extern "C" fn getrf<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *mut T,
    lda: Int,
    ipiv: *mut Int,
    info: *mut Int,
) -> Status {
    let all = General {
        m,
        n,
        a: Operand::one(a),
        lda,
        pivots: Some(Operand::one(ipiv)),
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.factor(Handle::of(h)?, info) })
}

unsafe extern "C" fn getrf_npvt<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *mut T,
    lda: Int,
    info: *mut Int,
) -> Status {
    let all = General {
        m,
        n,
        a: Operand::one(a),
        lda,
        pivots: None,
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.factor(Handle::of(h)?, info) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrf_strided<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    ipiv: *mut Int,
    stride_p: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        let pivots = Some(Operand::Strided(ipiv, stride_p));
        let all = General {
            m,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { all.factor(Handle::of(h)?, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrf_npvt_strided<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        let all = General {
            m,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots: None,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { all.factor(Handle::of(h)?, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrf_listed<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *const *mut T,
    lda: Int,
    ipiv: *mut Int,
    stride_p: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            let pivots = Some(Operand::Strided(ipiv, stride_p));
            General {
                m,
                n,
                a: Operand::listed(h, a, batch)?,
                lda,
                pivots,
                batch: batch_size(batch)?,
            }
            .factor(h, info)
        }
    })
}

unsafe extern "C" fn getrf_npvt_listed<T: Scalar>(
    h: rocblas_handle,
    m: Int,
    n: Int,
    a: *const *mut T,
    lda: Int,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            General {
                m,
                n,
                a: Operand::listed(h, a, batch)?,
                lda,
                pivots: None,
                batch: batch_size(batch)?,
            }
            .factor(h, info)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrs<T: Scalar>(
    h: rocblas_handle,
    trans: rocblas_operation,
    n: Int,
    nrhs: Int,
    a: *mut T,
    lda: Int,
    ipiv: *const Int,
    b: *mut T,
    ldb: Int,
) -> Status {
    let all = General {
        m: n,
        n,
        a: Operand::one(a),
        lda,
        pivots: Some(Operand::one(ipiv.cast_mut())),
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.solve(Handle::of(h)?, trans, nrhs, &Operand::one(b), ldb, |_| true) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrs_strided<T: Scalar>(
    h: rocblas_handle,
    trans: rocblas_operation,
    n: Int,
    nrhs: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    ipiv: *const Int,
    stride_p: Stride,
    b: *mut T,
    ldb: Int,
    stride_b: Stride,
    batch: Int,
) -> Status {
    entry(|| {
        let pivots = Some(Operand::Strided(ipiv.cast_mut(), stride_p));
        let all = General {
            m: n,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe {
            all.solve(Handle::of(h)?, trans, nrhs, &Operand::Strided(b, stride_b), ldb, |_| {
                true
            })
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getrs_listed<T: Scalar>(
    h: rocblas_handle,
    trans: rocblas_operation,
    n: Int,
    nrhs: Int,
    a: *const *mut T,
    lda: Int,
    ipiv: *const Int,
    stride_p: Stride,
    b: *const *mut T,
    ldb: Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            let pivots = Some(Operand::Strided(ipiv.cast_mut(), stride_p));
            let (a, b) = (Operand::listed(h, a, batch)?, Operand::listed(h, b, batch)?);
            General {
                m: n,
                n,
                a,
                lda,
                pivots,
                batch: batch_size(batch)?,
            }
            .solve(h, trans, nrhs, &b, ldb, |_| true)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn gesv<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    nrhs: Int,
    a: *mut T,
    lda: Int,
    ipiv: *mut Int,
    b: *mut T,
    ldb: Int,
    info: *mut Int,
) -> Status {
    let all = General {
        m: n,
        n,
        a: Operand::one(a),
        lda,
        pivots: Some(Operand::one(ipiv)),
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.factor_and_solve(Handle::of(h)?, nrhs, &Operand::one(b), ldb, info) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn gesv_strided<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    nrhs: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    ipiv: *mut Int,
    stride_p: Stride,
    b: *mut T,
    ldb: Int,
    stride_b: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        let pivots = Some(Operand::Strided(ipiv, stride_p));
        let all = General {
            m: n,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { all.factor_and_solve(Handle::of(h)?, nrhs, &Operand::Strided(b, stride_b), ldb, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn gesv_listed<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    nrhs: Int,
    a: *const *mut T,
    lda: Int,
    ipiv: *mut Int,
    stride_p: Stride,
    b: *const *mut T,
    ldb: Int,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            let pivots = Some(Operand::Strided(ipiv, stride_p));
            let (a, b) = (Operand::listed(h, a, batch)?, Operand::listed(h, b, batch)?);
            General {
                m: n,
                n,
                a,
                lda,
                pivots,
                batch: batch_size(batch)?,
            }
            .factor_and_solve(h, nrhs, &b, ldb, info)
        }
    })
}

unsafe extern "C" fn getri<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *mut T,
    lda: Int,
    ipiv: *mut Int,
    info: *mut Int,
) -> Status {
    let all = General {
        m: n,
        n,
        a: Operand::one(a),
        lda,
        pivots: Some(Operand::one(ipiv)),
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.invert(Handle::of(h)?, None, info) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getri_strided<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    ipiv: *mut Int,
    stride_p: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        let pivots = Some(Operand::Strided(ipiv, stride_p));
        let all = General {
            m: n,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { all.invert(Handle::of(h)?, None, info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getri_listed<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *const *mut T,
    lda: Int,
    ipiv: *mut Int,
    stride_p: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            let pivots = Some(Operand::Strided(ipiv, stride_p));
            General {
                m: n,
                n,
                a: Operand::listed(h, a, batch)?,
                lda,
                pivots,
                batch: batch_size(batch)?,
            }
            .invert(h, None, info)
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getri_outofplace<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *mut T,
    lda: Int,
    ipiv: *mut Int,
    c: *mut T,
    ldc: Int,
    info: *mut Int,
) -> Status {
    let all = General {
        m: n,
        n,
        a: Operand::one(a),
        lda,
        pivots: Some(Operand::one(ipiv)),
        batch: 1,
    };
    // SAFETY: as the C caller promises.
    entry(|| unsafe { all.invert(Handle::of(h)?, Some((&Operand::one(c), ldc)), info) })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getri_outofplace_strided<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *mut T,
    lda: Int,
    stride: Stride,
    ipiv: *mut Int,
    stride_p: Stride,
    c: *mut T,
    ldc: Int,
    stride_c: Stride,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        let pivots = Some(Operand::Strided(ipiv, stride_p));
        let all = General {
            m: n,
            n,
            a: Operand::Strided(a, stride),
            lda,
            pivots,
            batch: batch_size(batch)?,
        };
        // SAFETY: as the C caller promises.
        unsafe { all.invert(Handle::of(h)?, Some((&Operand::Strided(c, stride_c), ldc)), info) }
    })
}

#[allow(clippy::too_many_arguments, reason = "C function")]
unsafe extern "C" fn getri_outofplace_listed<T: Scalar>(
    h: rocblas_handle,
    n: Int,
    a: *const *mut T,
    lda: Int,
    ipiv: *mut Int,
    stride_p: Stride,
    c: *const *mut T,
    ldc: Int,
    info: *mut Int,
    batch: Int,
) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        unsafe {
            let h = Handle::of(h)?;
            let pivots = Some(Operand::Strided(ipiv, stride_p));
            let (a, c) = (Operand::listed(h, a, batch)?, Operand::listed(h, c, batch)?);
            General {
                m: n,
                n,
                a,
                lda,
                pivots,
                batch: batch_size(batch)?,
            }
            .invert(h, Some((&c, ldc)), info)
        }
    })
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocsolver_sys::Api) {
    slots! { api:
        rocsolver_sgetrf rocsolver_dgetrf rocsolver_cgetrf rocsolver_zgetrf = getrf;
        rocsolver_sgetrf_npvt rocsolver_dgetrf_npvt rocsolver_cgetrf_npvt rocsolver_zgetrf_npvt = getrf_npvt;
        rocsolver_sgetrf_strided_batched rocsolver_dgetrf_strided_batched rocsolver_cgetrf_strided_batched rocsolver_zgetrf_strided_batched = getrf_strided;
        rocsolver_sgetrf_npvt_strided_batched rocsolver_dgetrf_npvt_strided_batched rocsolver_cgetrf_npvt_strided_batched rocsolver_zgetrf_npvt_strided_batched = getrf_npvt_strided;
        rocsolver_sgetrf_batched rocsolver_dgetrf_batched rocsolver_cgetrf_batched rocsolver_zgetrf_batched = getrf_listed;
        rocsolver_sgetrf_npvt_batched rocsolver_dgetrf_npvt_batched rocsolver_cgetrf_npvt_batched rocsolver_zgetrf_npvt_batched = getrf_npvt_listed;
        rocsolver_sgetrs rocsolver_dgetrs rocsolver_cgetrs rocsolver_zgetrs = getrs;
        rocsolver_sgetrs_strided_batched rocsolver_dgetrs_strided_batched rocsolver_cgetrs_strided_batched rocsolver_zgetrs_strided_batched = getrs_strided;
        rocsolver_sgetrs_batched rocsolver_dgetrs_batched rocsolver_cgetrs_batched rocsolver_zgetrs_batched = getrs_listed;
        rocsolver_sgesv rocsolver_dgesv rocsolver_cgesv rocsolver_zgesv = gesv;
        rocsolver_sgesv_strided_batched rocsolver_dgesv_strided_batched rocsolver_cgesv_strided_batched rocsolver_zgesv_strided_batched = gesv_strided;
        rocsolver_sgesv_batched rocsolver_dgesv_batched rocsolver_cgesv_batched rocsolver_zgesv_batched = gesv_listed;
        rocsolver_sgetri rocsolver_dgetri rocsolver_cgetri rocsolver_zgetri = getri;
        rocsolver_sgetri_strided_batched rocsolver_dgetri_strided_batched rocsolver_cgetri_strided_batched rocsolver_zgetri_strided_batched = getri_strided;
        rocsolver_sgetri_batched rocsolver_dgetri_batched rocsolver_cgetri_batched rocsolver_zgetri_batched = getri_listed;
        rocsolver_sgetri_outofplace rocsolver_dgetri_outofplace rocsolver_cgetri_outofplace rocsolver_zgetri_outofplace = getri_outofplace;
        rocsolver_sgetri_outofplace_strided_batched rocsolver_dgetri_outofplace_strided_batched rocsolver_cgetri_outofplace_strided_batched rocsolver_zgetri_outofplace_strided_batched = getri_outofplace_strided;
        rocsolver_sgetri_outofplace_batched rocsolver_dgetri_outofplace_batched rocsolver_cgetri_outofplace_batched rocsolver_zgetri_outofplace_batched = getri_outofplace_listed;
    }
}
