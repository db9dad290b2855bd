//! Complex products by cuBLAS. Signatures: `cublas_api.h`.

use std::ffi::{c_int, c_longlong, c_uint, c_void};

use hip_sys::hipStream_t;

use super::{Error, Result, function, make_current};

mod library {
    use crate::cuda::library::Opened;
    use crate::peer::{Error, Result};

    pub(super) const TITLE: &str = "cuBLAS";

    pub(super) fn opened() -> Result<&'static Opened> {
        crate::cuda::opened_cublas().map_err(|cause| Error(cause.to_owned()))
    }
}

type Raw = *mut c_void;
type Complex = [f32; 2];

function!(library: cublasCreate_v2(out: *mut Raw));
function!(library: cublasDestroy_v2(handle: Raw));
function!(library: cublasSetStream_v2(handle: Raw, stream: hipStream_t));
function!(library: cublasCgemmStridedBatched(
    handle: Raw, transpose_a: c_uint, transpose_b: c_uint, m: c_int, n: c_int, k: c_int,
    alpha: *const Complex, a: *const Complex, lda: c_int, stride_a: c_longlong,
    b: *const Complex, ldb: c_int, stride_b: c_longlong,
    beta: *const Complex, c: *mut Complex, ldc: c_int, stride_c: c_longlong, count: c_int,
));
function!(library: cublasCgemm_v2(
    handle: Raw, transpose_a: c_uint, transpose_b: c_uint, m: c_int, n: c_int, k: c_int,
    alpha: *const Complex, a: *const Complex, lda: c_int, b: *const Complex, ldb: c_int,
    beta: *const Complex, c: *mut Complex, ldc: c_int,
));

/// `count` products `C = A B` of square matrices of `size` rows, column-major and dense, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Rows and columns.
    pub size: usize,
    /// Number of products.
    pub count: usize,
    /// Address of the first `A`, on the device.
    pub a: *const Complex,
    /// Address of the first `B`, on the device.
    pub b: *const Complex,
    /// Address of the first `C`, on the device.
    pub c: *mut Complex,
}

/// A cuBLAS handle on one stream, scalars on the host.
#[derive(Debug)]
pub struct Cublas(Raw);

impl Cublas {
    /// A handle on this stream of the calling thread's device.
    ///
    /// # Errors
    /// No cuBLAS, or it refuses.
    ///
    /// # Safety
    /// The stream is alive for as long as the handle is.
    pub unsafe fn new(stream: hipStream_t) -> Result<Self> {
        make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        unsafe { cublasCreate_v2(&mut raw) }?;
        let handle = Self(raw);
        // SAFETY: a live handle, and a stream that lives by the caller's promise.
        unsafe { cublasSetStream_v2(handle.0, stream) }?;
        Ok(handle)
    }

    /// Queues the products: by `cublasCgemm` if there is one, by `cublasCgemmStridedBatched` otherwise.
    ///
    /// # Errors
    /// A size beyond 32 bits, or cuBLAS refuses.
    ///
    /// # Safety
    /// The three addresses hold `count * size * size` numbers each, and nothing else uses those of `c`, until the
    /// stream has done the work.
    pub unsafe fn multiply(&self, product: &Product) -> Result<()> {
        let whole = |value: usize| c_int::try_from(value).map_err(|_| Error(format!("{value} is beyond 32 bits")));
        let (size, count) = (whole(product.size)?, whole(product.count)?);
        let stride = c_longlong::from(size) * c_longlong::from(size);
        let (one, zero) = ([1.0, 0.0], [0.0, 0.0]);
        let Product { a, b, c, .. } = *product;
        if count == 1 {
            // SAFETY: dense matrices at these addresses by the caller's promise; 0 leaves an operand as it is.
            return unsafe { cublasCgemm_v2(self.0, 0, 0, size, size, size, &one, a, size, b, size, &zero, c, size) };
        }
        // SAFETY: as above.
        unsafe {
            cublasCgemmStridedBatched(
                self.0, 0, 0, size, size, size, &one, a, size, stride, b, size, stride, &zero, c, size, stride, count,
            )
        }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: a live handle that nothing uses any more; a refusal leaves it to the process's end.
        let _ = unsafe { cublasDestroy_v2(self.0) };
    }
}
