//! Memory that a routine needs while it runs, in the order of its stream.

use std::ffi::c_void;
use std::marker::PhantomData;

use hip_sys::hipStream_t;

use crate::blas::handle::Handle;
use crate::blas::{Result, from_hip};
use crate::cuda::driver::Driver;
use crate::memory::{address, pointer};

/// Freed in stream order when dropped: work that was queued before may still use it.
pub(super) struct Scratch<T> {
    driver: &'static Driver,
    at: *mut c_void,
    stream: hipStream_t,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Room for `len` elements, at least one.
    pub(super) fn new(handle: &Handle, len: usize) -> Result<Self> {
        let driver = handle.begin()?;
        let stream = handle.stream();
        let mut found = 0;
        // SAFETY: writes one address to the place given; the stream is the handle's.
        unsafe { driver.cuMemAllocAsync(&mut found, len.max(1) * size_of::<T>(), stream) }
            .map_err(from_hip)?;
        Ok(Self {
            driver,
            at: pointer(found),
            stream,
            of: PhantomData,
        })
    }

    pub(super) fn at(&self) -> *mut T {
        self.at.cast()
    }

    /// Copies the first `len` elements, in stream order.
    ///
    /// # Safety
    /// There are so many, and room for them at `to`, which is device memory.
    pub(super) unsafe fn copy_to(&self, to: *mut T, len: usize) -> Result {
        let bytes = len * size_of::<T>();
        // SAFETY: the caller's promise.
        unsafe {
            self.driver
                .cuMemcpyAsync(address(to), address(self.at), bytes, self.stream)
        }
        .map_err(from_hip)
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: allocated above, freed once, behind all work that was queued with it. A failure leaves nothing to do.
        let _ = unsafe { self.driver.cuMemFreeAsync(address(self.at), self.stream) };
    }
}

/// Clears `len` numbers in stream order.
///
/// # Safety
/// `at` is valid device memory of `len` numbers.
pub(super) unsafe fn clear(handle: &Handle, at: *mut i32, len: usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        handle
            .begin()?
            .cuMemsetD32Async(address(at), 0, len, handle.stream())
    }
    .map_err(from_hip)
}
