//! Device memory, streams and handles for the tests, through the function tables alone.

use std::ffi::c_void;
use std::ptr::null_mut;

use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};
use num_complex::Complex;
use rocblas_sys::{rocblas_handle, rocblas_status};

pub const SUCCESS: rocblas_status = rocblas_status::rocblas_status_success;

/// A slot of a function table, which the test needs.
macro_rules! slot {
    ($api:expr, $name:ident) => {
        $api.$name.expect(stringify!($name))
    };
}
pub(crate) use slot;

/// Memory from `hipMalloc`.
pub struct Buffer<T> {
    ptr: *mut T,
    len: usize,
}

impl<T: Copy> Buffer<T> {
    pub fn new(values: &[T]) -> Self {
        let hip = hip_host::hip_api();
        let bytes = size_of_val(values);
        let mut ptr = null_mut::<c_void>();
        // SAFETY: the pointers are valid for their sizes. A buffer of no elements still gets an
        // address.
        unsafe {
            let code = slot!(hip, hipMalloc)(&mut ptr, bytes.max(1));
            assert_eq!(code, hipError_t::hipSuccess);
            if bytes != 0 {
                let kind = hipMemcpyKind::hipMemcpyHostToDevice;
                let code = slot!(hip, hipMemcpy)(ptr, values.as_ptr().cast(), bytes, kind);
                assert_eq!(code, hipError_t::hipSuccess);
            }
        }
        Self {
            ptr: ptr.cast(),
            len: values.len(),
        }
    }

    pub fn ptr(&self) -> *mut T {
        self.ptr
    }

    /// Waits for the null stream and blocking streams, as `hipMemcpy` does.
    pub fn read(&self) -> Vec<T> {
        let hip = hip_host::hip_api();
        let mut values = Vec::with_capacity(self.len);
        if self.len != 0 {
            let bytes = self.len * size_of::<T>();
            // SAFETY: the vector has room for `len` elements, which the copy fills.
            unsafe {
                let kind = hipMemcpyKind::hipMemcpyDeviceToHost;
                let code = slot!(hip, hipMemcpy)(values.as_mut_ptr() as *mut c_void, self.ptr.cast(), bytes, kind);
                assert_eq!(code, hipError_t::hipSuccess);
                values.set_len(self.len);
            }
        }
        values
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let hip = hip_host::hip_api();
        // SAFETY: allocated in `new`; freeing waits for the device.
        let _ = unsafe { slot!(hip, hipFree)(self.ptr.cast()) };
    }
}

pub struct Stream(pub hipStream_t);

impl Stream {
    pub fn new() -> Self {
        let mut stream = null_mut();
        // SAFETY: valid for a write.
        let code = unsafe { slot!(hip_host::hip_api(), hipStreamCreate)(&mut stream) };
        assert_eq!(code, hipError_t::hipSuccess);
        Self(stream)
    }

    pub fn synchronize(&self) -> hipError_t {
        // SAFETY: a live stream.
        unsafe { slot!(hip_host::hip_api(), hipStreamSynchronize)(self.0) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created in `new`.
        let _ = unsafe { slot!(hip_host::hip_api(), hipStreamDestroy)(self.0) };
    }
}

/// A rocBLAS handle on the null stream.
pub struct Handle(pub rocblas_handle);

impl Handle {
    pub fn new() -> Self {
        let mut handle = null_mut();
        // SAFETY: valid for a write.
        let status = unsafe { slot!(hip_host_blas::rocblas_api(), rocblas_create_handle)(&mut handle) };
        assert_eq!(status, SUCCESS);
        Self(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created in `new`; a handle that the test destroyed itself is refused.
        let _ = unsafe { slot!(hip_host_blas::rocblas_api(), rocblas_destroy_handle)(self.0) };
    }
}

/// Numbers that look random and are the same in every run.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// In -1..1.
    pub fn real(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn element<T: Element>(&mut self) -> T {
        let re = self.real();
        T::narrow(Complex::new(re, self.real()))
    }

    pub fn elements<T: Element>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| self.element()).collect()
    }
}

/// The four element types, and their way to and from the double-precision complex numbers of the
/// references.
pub trait Element: Copy + std::fmt::Debug + PartialEq + 'static {
    /// The unit roundoff.
    const EPSILON: f64;
    const NAN: Self;
    fn wide(self) -> Complex<f64>;
    /// The imaginary part of a real type is dropped.
    fn narrow(value: Complex<f64>) -> Self;
    fn bits(self) -> [u64; 2];
}

macro_rules! element {
    ($real:ty) => {
        impl Element for $real {
            const EPSILON: f64 = <$real>::EPSILON as f64;
            const NAN: Self = <$real>::NAN;
            fn wide(self) -> Complex<f64> {
                Complex::new(self as f64, 0.0)
            }
            fn narrow(value: Complex<f64>) -> Self {
                value.re as $real
            }
            fn bits(self) -> [u64; 2] {
                [self.to_bits() as u64, 0]
            }
        }
        impl Element for Complex<$real> {
            const EPSILON: f64 = <$real>::EPSILON as f64;
            const NAN: Self = Complex::new(<$real>::NAN, <$real>::NAN);
            fn wide(self) -> Complex<f64> {
                Complex::new(self.re as f64, self.im as f64)
            }
            fn narrow(value: Complex<f64>) -> Self {
                Complex::new(value.re as $real, value.im as $real)
            }
            fn bits(self) -> [u64; 2] {
                [self.re.to_bits() as u64, self.im.to_bits() as u64]
            }
        }
    };
}
element!(f32);
element!(f64);

/// Equal to the last bit, NaN included.
pub fn same<T: Element>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.bits() == b.bits())
}
