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
        let driver = handle.make_current()?;
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
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: allocated above, freed once, behind all work that was queued with it. A failure leaves nothing to do.
        let _ = unsafe { self.driver.cuMemFreeAsync(address(self.at), self.stream) };
    }
}

/// Reads device memory behind everything that was queued; waits for it.
///
/// # Safety
/// `from` is valid device memory of `len` elements, and any bytes are a `T`.
pub(super) unsafe fn read<T: Copy + Default>(
    handle: &Handle,
    from: *const T,
    len: usize,
) -> Result<Vec<T>> {
    let driver = handle.make_current()?;
    let mut values = vec![T::default(); len];
    let bytes = len * size_of::<T>();
    // SAFETY: both ranges have this size, and the host's stays until the stream is done.
    unsafe {
        driver
            .cuMemcpyAsync(
                address(values.as_mut_ptr()),
                address(from),
                bytes,
                handle.stream(),
            )
            .and_then(|()| driver.cuStreamSynchronize(handle.stream()))
    }
    .map_err(from_hip)?;
    Ok(values)
}

/// Clears `len` numbers in stream order.
///
/// # Safety
/// `at` is valid device memory of `len` numbers.
pub(super) unsafe fn clear(handle: &Handle, at: *mut i32, len: usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        handle
            .make_current()?
            .cuMemsetD32Async(address(at), 0, len, handle.stream())
    }
    .map_err(from_hip)
}
