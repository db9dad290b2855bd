//! Products of mixed precision. rocBLAS writes D = alpha A B + beta C, cuBLAS only C: where D is another matrix, C is
//! copied there first.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};
use rocblas_sys::{rocblas_datatype, rocblas_int, rocblas_operation, rocblas_status as Status, rocblas_stride};

use super::convert::{Argument, Room};
use super::family::Place;
use super::handle::{Handle, Raw};
use super::{Result, check, from_hip, library};
use crate::cuda::{Symbol, c_name};
use crate::memory::{address, pointer};

/// `cudaDataType` and the bytes of one element (library_types.h).
fn data_type(ty: rocblas_datatype) -> Result<(c_uint, usize)> {
    Ok(match ty {
        rocblas_datatype::rocblas_datatype_f32_r => (0, 4),
        rocblas_datatype::rocblas_datatype_f64_r => (1, 8),
        rocblas_datatype::rocblas_datatype_f16_r => (2, 2),
        rocblas_datatype::rocblas_datatype_i8_r => (3, 1),
        rocblas_datatype::rocblas_datatype_f32_c => (4, 8),
        rocblas_datatype::rocblas_datatype_f64_c => (5, 16),
        rocblas_datatype::rocblas_datatype_i32_r => (10, 4),
        rocblas_datatype::rocblas_datatype_bf16_r => (14, 2),
        _ => return Err(Status::rocblas_status_not_implemented),
    })
}

/// `cublasComputeType_t`; the types of the matrices identify a complex product.
fn compute_type(ty: rocblas_datatype) -> Result<c_uint> {
    Ok(match ty {
        rocblas_datatype::rocblas_datatype_f16_r => 64,
        rocblas_datatype::rocblas_datatype_f32_r | rocblas_datatype::rocblas_datatype_f32_c => 68,
        rocblas_datatype::rocblas_datatype_f64_r | rocblas_datatype::rocblas_datatype_f64_c => 70,
        rocblas_datatype::rocblas_datatype_i32_r => 72,
        _ => return Err(Status::rocblas_status_not_implemented),
    })
}

/// A matrix, the first of a row of them, or a list of their addresses on the device.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    at: *mut c_void,
    ty: rocblas_datatype,
    ld: rocblas_int,
    stride: rocblas_stride,
}

impl Matrix {
    pub(super) fn new(place: Place<c_void>, ty: rocblas_datatype, ld: rocblas_int) -> Self {
        let (at, stride) = match place {
            Place::Strided(first, stride) => (first, stride),
            Place::Listed(list) => (list.cast_mut().cast(), 0),
        };
        Self { at, ty, ld, stride }
    }

    fn one(at: u64, ty: rocblas_datatype, ld: rocblas_int) -> Self {
        Self::new(Place::Strided(pointer(at), 0), ty, ld)
    }
}

pub(super) struct Product {
    pub(super) trans: [rocblas_operation; 2],
    pub(super) m: rocblas_int,
    pub(super) n: rocblas_int,
    pub(super) k: rocblas_int,
    pub(super) alpha: *const c_void,
    pub(super) beta: *const c_void,
    pub(super) a: Matrix,
    pub(super) b: Matrix,
    pub(super) c: Matrix,
    pub(super) d: Matrix,
    pub(super) batch: rocblas_int,
    /// Whether the matrices are lists, and strides mean nothing.
    pub(super) listed: bool,
    pub(super) compute: rocblas_datatype,
}

type GemmBatchedEx = unsafe extern "C" fn(
    Raw,
    c_uint,
    c_uint,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_uint,
    c_int,
    *const c_void,
    c_uint,
    c_int,
    *const c_void,
    *mut c_void,
    c_uint,
    c_int,
    c_int,
    c_uint,
    c_int,
) -> c_uint;

type GemmStridedBatchedEx = unsafe extern "C" fn(
    Raw,
    c_uint,
    c_uint,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_uint,
    c_int,
    i64,
    *const c_void,
    c_uint,
    c_int,
    i64,
    *const c_void,
    *mut c_void,
    c_uint,
    c_int,
    i64,
    c_int,
    c_uint,
    c_int,
) -> c_uint;

/// The address of a function of cuBLAS as a pointer of its type.
///
/// # Safety
/// `F` is that function's type (cublas_api.h).
unsafe fn typed<F: Copy>(symbol: &'static Symbol) -> Result<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = symbol
        .in_library(library()?)
        .ok_or(Status::rocblas_status_not_implemented)?;
    // SAFETY: an address, as long as a function's pointer, of a function of this type by the caller's promise.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

/// A product in cuBLAS' numbers.
struct Codes {
    trans: [c_uint; 2],
    types: [c_uint; 3],
    compute: c_uint,
}

static LISTED: Symbol = Symbol::new(c_name("cublasGemmBatchedEx\0"));
static STRIDED: Symbol = Symbol::new(c_name("cublasGemmStridedBatchedEx\0"));

impl Product {
    /// # Safety
    /// As `rocblas_gemm_strided_batched_ex`.
    pub(super) unsafe fn run(&self, handle: &Handle) -> Result {
        if self.m == 0 || self.n == 0 || self.batch == 0 {
            return Ok(());
        }
        if self.m < 0 || self.n < 0 || self.k < 0 || self.batch < 0 || self.c.ld < self.m || self.d.ld < self.m {
            return Err(Status::rocblas_status_invalid_size);
        }
        if self.alpha.is_null() || self.beta.is_null() || self.c.at.is_null() || self.d.at.is_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        if self.c.ty != self.d.ty {
            return Err(Status::rocblas_status_not_implemented);
        }
        // What cuBLAS would refuse is refused before C is copied.
        let (a, b, d) = (
            data_type(self.a.ty)?.0,
            data_type(self.b.ty)?.0,
            data_type(self.d.ty)?.0,
        );
        let compute = compute_type(self.compute)?;
        let [trans_a, trans_b] = [self.trans[0].cuda()?, self.trans[1].cuda()?];
        handle.begin()?;
        if self.d.at != self.c.at {
            // SAFETY: the C caller's promise for both matrices.
            unsafe { self.copy_c_to_d(handle) }?;
        } else if self.c.ld != self.d.ld || (self.batch > 1 && !self.listed && self.c.stride != self.d.stride) {
            return Err(Status::rocblas_status_invalid_size);
        }
        let (mut alpha_room, mut beta_room) = (Room::default(), Room::default());
        let on_host = handle.scalars_on_host();
        let staged = |scalar: *const c_void, room| match data_type(self.compute)?.1 {
            // SAFETY: one number of the compute type, the host's by the pointer mode; the rooms outlive the call.
            16 => Ok(unsafe { scalar.cast::<[f64; 2]>().staged(on_host, room) }.cast()),
            // SAFETY: as above.
            8 => Ok(unsafe { scalar.cast::<[f32; 2]>().staged(on_host, room) }.cast()),
            _ => Ok(scalar),
        };
        let alpha: *const c_void = staged(self.alpha, &mut alpha_room)?;
        let beta: *const c_void = staged(self.beta, &mut beta_room)?;
        let codes = Codes {
            trans: [trans_a, trans_b],
            types: [a, b, d],
            compute,
        };
        let scalars = [alpha, beta];
        // SAFETY: the C caller's promise.
        if unsafe { self.is_even(handle) }? {
            // SAFETY: as above.
            match unsafe { self.at_once(handle, &codes, scalars) } {
                // of some types cuBLAS takes no list
                Err(Status::rocblas_status_not_implemented) if self.listed => {}
                outcome => return outcome,
            }
        }
        // SAFETY: as above.
        unsafe { self.one_by_one(handle, &codes, scalars) }
    }

    /// One call of cuBLAS.
    ///
    /// # Safety
    /// As `rocblas_gemm_strided_batched_ex`, with scalars where cuBLAS can load them.
    unsafe fn at_once(&self, handle: &Handle, codes: &Codes, [alpha, beta]: [*const c_void; 2]) -> Result {
        let ([trans_a, trans_b], [a, b, d]) = (codes.trans, codes.types);
        let compute = codes.compute;
        let (m, n, k, raw) = (self.m, self.n, self.k, handle.raw());
        let (a_at, b_at, d_at) = (self.a.at, self.b.at, self.d.at);
        let (lda, ldb, ldd) = (self.a.ld, self.b.ld, self.d.ld);
        if self.listed {
            // SAFETY: the type of this function.
            let function = unsafe { typed::<GemmBatchedEx>(&LISTED) }?;
            // SAFETY: the C caller's promise to rocBLAS is what cuBLAS demands; -1 lets it choose the algorithm.
            let code = unsafe {
                function(
                    raw, trans_a, trans_b, m, n, k, alpha, a_at, a, lda, b_at, b, ldb, beta, d_at, d, ldd, self.batch,
                    compute, -1,
                )
            };
            return check(code, "cublasGemmBatchedEx");
        }
        // SAFETY: the type of this function.
        let function = unsafe { typed::<GemmStridedBatchedEx>(&STRIDED) }?;
        let [stride_a, stride_b, stride_d] = [self.a.stride, self.b.stride, self.d.stride];
        // SAFETY: as above.
        let code = unsafe {
            function(
                raw, trans_a, trans_b, m, n, k, alpha, a_at, a, lda, stride_a, b_at, b, ldb, stride_b, beta, d_at, d,
                ldd, stride_d, self.batch, compute, -1,
            )
        };
        check(code, "cublasGemmStridedBatchedEx")
    }

    /// Whether cuBLAS can take the batch in one call: it looks at the first matrix of a row to choose a kernel, and one
    /// for 16-bit numbers loads and stores several of them at once, which faults where a later matrix is aligned less.
    /// (rocBLAS' are right for any address of an element.) Where such matrices are listed, this waits for the stream.
    ///
    /// # Safety
    /// As [`Product::places`].
    unsafe fn is_even(&self, handle: &Handle) -> Result<bool> {
        const WIDEST: u64 = 16;
        let types = [self.a.ty, self.b.ty, self.d.ty];
        let narrow = |ty: &rocblas_datatype| data_type(*ty).is_ok_and(|(_, size)| size < 4);
        if (self.batch == 1 && !self.listed) || !types.iter().any(narrow) {
            return Ok(true);
        }
        // SAFETY: the caller's promise.
        let places = unsafe { self.all_places(handle) }?;
        // Of a list it cannot see the first.
        let even = |places: &Vec<u64>| {
            let first = places.first().filter(|_| !self.listed).copied();
            let wanted = first.unwrap_or(0) % WIDEST;
            places.iter().all(|place| place % WIDEST == wanted)
        };
        Ok(places.iter().all(even))
    }

    /// A call for each product of the batch.
    ///
    /// # Safety
    /// As [`Product::at_once`].
    unsafe fn one_by_one(&self, handle: &Handle, codes: &Codes, scalars: [*const c_void; 2]) -> Result {
        // SAFETY: the caller's promise.
        let [a, b, d] = unsafe { self.all_places(handle) }?;
        for ((a, b), d) in a.into_iter().zip(b).zip(d) {
            let one = Self {
                a: Matrix::one(a, self.a.ty, self.a.ld),
                b: Matrix::one(b, self.b.ty, self.b.ld),
                d: Matrix::one(d, self.d.ty, self.d.ld),
                batch: 1,
                listed: false,
                ..*self
            };
            // SAFETY: the caller's promise for each.
            unsafe { one.at_once(handle, codes, scalars) }?;
        }
        Ok(())
    }

    /// Where A, B and D of each product are.
    ///
    /// # Safety
    /// As [`Product::places`].
    unsafe fn all_places(&self, handle: &Handle) -> Result<[Vec<u64>; 3]> {
        let size = |ty| data_type(ty).map(|(_, size)| size);
        let (a, b, d) = (&self.a, &self.b, &self.d);
        // SAFETY: the caller's promise.
        unsafe {
            Ok([
                self.places(handle, a.at, a.stride, size(a.ty)?)?,
                self.places(handle, b.at, b.stride, size(b.ty)?)?,
                self.places(handle, d.at, d.stride, size(d.ty)?)?,
            ])
        }
    }

    /// Where the matrices of a batch are.
    ///
    /// # Safety
    /// A list is one of this batch's length, on the device.
    unsafe fn places(
        &self,
        handle: &Handle,
        first: *const c_void,
        stride: rocblas_stride,
        size: usize,
    ) -> Result<Vec<u64>> {
        if self.listed {
            let len = self.batch.unsigned_abs() as usize;
            // SAFETY: the caller's promise; an address is a number of 64 bits.
            return unsafe { handle.read::<u64>(first.cast(), len) };
        }
        let step = stride.wrapping_mul(size as i64);
        let one = |index: i64| address(first).wrapping_add_signed(step.wrapping_mul(index));
        Ok((0..i64::from(self.batch)).map(one).collect())
    }

    /// # Safety
    /// Both are matrices of this product's size.
    unsafe fn copy_c_to_d(&self, handle: &Handle) -> Result {
        let driver = handle.begin()?;
        let size = data_type(self.c.ty)?.1;
        let bytes = |elements: rocblas_int| elements.unsigned_abs() as usize * size;
        // SAFETY: the caller's promise.
        let (from, to) = unsafe {
            (
                self.places(handle, self.c.at, self.c.stride, size)?,
                self.places(handle, self.d.at, self.d.stride, size)?,
            )
        };
        for (from, to) in from.into_iter().zip(to).filter(|(from, to)| from != to) {
            let copy = CUDA_MEMCPY2D {
                srcXInBytes: 0,
                srcY: 0,
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcHost: std::ptr::null(),
                srcDevice: from,
                srcArray: std::ptr::null_mut(),
                srcPitch: bytes(self.c.ld),
                dstXInBytes: 0,
                dstY: 0,
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstHost: std::ptr::null_mut(),
                dstDevice: to,
                dstArray: std::ptr::null_mut(),
                dstPitch: bytes(self.d.ld),
                WidthInBytes: bytes(self.m),
                Height: self.n.unsigned_abs() as usize,
            };
            // SAFETY: the caller's promise; the description outlives the call.
            unsafe { driver.cuMemcpy2DAsync_v2(&copy, handle.stream()) }.map_err(from_hip)?;
        }
        Ok(())
    }
}
