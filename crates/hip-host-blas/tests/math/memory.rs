//! Device memory with guards on both sides, a stream and a handle on it.

use std::ptr::null_mut;
use std::sync::LazyLock;

use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};
use rocblas_sys::{rocblas_handle, rocblas_pointer_mode, rocblas_status};

use crate::number::Plain;

pub static HIP: LazyLock<hip_sys::Api> = LazyLock::new(hip_host::hip_api);
pub static SOLVER: LazyLock<rocsolver_sys::Api> = LazyLock::new(hip_host_blas::rocsolver_api);
pub static BLAS: LazyLock<rocblas_sys::Api> = LazyLock::new(hip_host_blas::rocblas_api);

pub const SUCCESS: rocblas_status = rocblas_status::rocblas_status_success;

#[track_caller]
fn succeed(error: hipError_t) {
    assert_eq!(error, hipError_t::hipSuccess);
}

/// Elements before and behind the ones a test asked for.
const GUARD: usize = 64;

/// Device memory that remembers what was written to it, to see later what a call changed.
pub struct Buffer<T: Plain> {
    base: *mut T,
    before: Vec<T>,
}

impl<T: Plain> Buffer<T> {
    /// Holds `values` between guards.
    pub fn new(values: &[T]) -> Self {
        // SAFETY: any bytes are a value.
        let guard = [unsafe { std::mem::transmute_copy::<_, T>(&[0xc3_u8; 16]) }; GUARD];
        let before = [&guard[..], values, &guard].concat();
        let mut base = null_mut();
        // SAFETY: allocates and fills as many bytes as `before` has.
        unsafe {
            succeed(HIP.hipMalloc.unwrap()(&mut base, size_of_val(&before[..])));
            succeed(HIP.hipMemcpy.unwrap()(
                base,
                before.as_ptr().cast(),
                size_of_val(&before[..]),
                hipMemcpyKind::hipMemcpyHostToDevice,
            ));
        }
        Self {
            base: base.cast(),
            before,
        }
    }

    /// The first of the values.
    pub fn ptr(&self) -> *mut T {
        self.base.wrapping_add(GUARD)
    }

    fn all(&self) -> Vec<T> {
        let mut all = self.before.clone();
        // SAFETY: reads as many bytes as were allocated.
        unsafe {
            succeed(HIP.hipMemcpy.unwrap()(
                all.as_mut_ptr().cast(),
                self.base.cast_const().cast(),
                size_of_val(&all[..]),
                hipMemcpyKind::hipMemcpyDeviceToHost,
            ));
        }
        all
    }

    /// What is there now.
    pub fn read(&self) -> Vec<T> {
        let all = self.all();
        all[GUARD..all.len() - GUARD].to_vec()
    }

    /// Fails if an element that `written` does not name (by its index among the values) is not
    /// what it was, bit for bit.
    #[track_caller]
    pub fn assert_only_written(&self, written: impl Fn(usize) -> bool) {
        let bits = |values: &[T]| {
            // SAFETY: numbers without padding, read as bytes.
            unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
                .chunks(size_of::<T>())
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        let now = bits(&self.all());
        for (i, (old, new)) in bits(&self.before).into_iter().zip(now).enumerate() {
            let inside = i >= GUARD && i < self.before.len() - GUARD;
            if !(inside && written(i - GUARD)) {
                assert_eq!(old, new, "element {} was written", i as i64 - GUARD as i64);
            }
        }
    }

    /// Fails if anything was written at all.
    #[track_caller]
    pub fn assert_untouched(&self) {
        self.assert_only_written(|_| false);
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        let error = unsafe { HIP.hipFree.unwrap()(self.base.cast()) };
        if !std::thread::panicking() {
            succeed(error);
        }
    }
}

/// A handle on a stream of its own.
pub struct Handle {
    pub raw: rocblas_handle,
    stream: hipStream_t,
}

impl Handle {
    pub fn new() -> Self {
        Self::with(hip_sys::hipStreamDefault)
    }

    /// For work that is to fail, which would fail the copies of other tests that run at that time.
    pub fn apart() -> Self {
        Self::with(hip_sys::hipStreamNonBlocking)
    }

    fn with(flags: u32) -> Self {
        let (mut raw, mut stream) = (null_mut(), null_mut());
        // SAFETY: valid places for the results.
        unsafe {
            succeed(HIP.hipStreamCreateWithFlags.unwrap()(&mut stream, flags));
            assert_eq!(BLAS.rocblas_create_handle.unwrap()(&mut raw), SUCCESS);
            assert_eq!(BLAS.rocblas_set_stream.unwrap()(raw, stream), SUCCESS);
        }
        Self { raw, stream }
    }

    pub fn in_device_mode(self) -> Self {
        let mode = rocblas_pointer_mode::rocblas_pointer_mode_device;
        // SAFETY: a live handle.
        let status = unsafe { BLAS.rocblas_set_pointer_mode.unwrap()(self.raw, mode) };
        assert_eq!(status, SUCCESS);
        self
    }

    /// Waits for all that was enqueued and says how it went.
    pub fn wait(&self) -> hipError_t {
        // SAFETY: a live stream.
        unsafe { HIP.hipStreamSynchronize.unwrap()(self.stream) }
    }

    #[track_caller]
    pub fn finish(&self, status: rocblas_status) {
        assert_eq!(status, SUCCESS);
        succeed(self.wait());
    }

    /// Holds the stream back until the returned value is dropped.
    pub fn hold(&self) -> Hold {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        unsafe extern "C" fn wait(receive: *mut std::ffi::c_void) {
            // SAFETY: the box made below, given to one callback.
            let receive = unsafe { Box::from_raw(receive.cast::<std::sync::mpsc::Receiver<()>>()) };
            // Ends with an error when the sender is dropped, which is the signal.
            let _ = receive.recv();
        }
        let receive = Box::into_raw(Box::new(receive));
        // SAFETY: a live stream; the callback owns its argument.
        succeed(unsafe { HIP.hipLaunchHostFunc.unwrap()(self.stream, Some(wait), receive.cast()) });
        Hold(Some(send))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe {
            let status = BLAS.rocblas_destroy_handle.unwrap()(self.raw);
            let error = HIP.hipStreamDestroy.unwrap()(self.stream);
            if !std::thread::panicking() {
                assert_eq!(status, SUCCESS);
                succeed(error);
            }
        }
    }
}

pub struct Hold(Option<std::sync::mpsc::Sender<()>>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// A device array of device pointers.
pub struct Pointers<T> {
    base: *mut *mut T,
}

impl<T> Pointers<T> {
    /// `count` places, `stride` elements apart.
    pub fn at(first: *mut T, stride: i64, count: usize) -> Self {
        let places: Vec<*mut T> = (0..count as isize)
            .map(|i| first.wrapping_offset(i * stride as isize))
            .collect();
        let mut base = null_mut();
        let bytes = size_of_val(&places[..]);
        // SAFETY: allocates and fills as many bytes as there are places.
        unsafe {
            succeed(HIP.hipMalloc.unwrap()(&mut base, bytes));
            succeed(HIP.hipMemcpy.unwrap()(
                base,
                places.as_ptr().cast(),
                bytes,
                hipMemcpyKind::hipMemcpyHostToDevice,
            ));
        }
        Self { base: base.cast() }
    }

    pub fn inputs(&self) -> *const *const T {
        self.base.cast_const().cast()
    }

    pub fn outputs(&self) -> *const *mut T {
        self.base.cast_const()
    }
}

impl<T> Drop for Pointers<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `at`, freed once.
        let error = unsafe { HIP.hipFree.unwrap()(self.base.cast()) };
        if !std::thread::panicking() {
            succeed(error);
        }
    }
}
