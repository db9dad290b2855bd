//! Memory that a routine needs while it runs, in the order of its stream.

use std::ffi::{c_uint, c_void};
use std::marker::PhantomData;

use hip_sys::{hipMemAllocationType, hipMemLocation, hipMemLocationType, hipMemPool_t, hipMemPoolProps, hipStream_t};

use super::handle::Handle;
use super::{Result, from_hip};
use crate::cuda::driver::Driver;
use crate::memory::{address, pointer};

/// Bytes that a handle keeps for its next routine: the device's own pool releases everything at each wait for a stream,
/// and mapping a large piece anew takes longer than the work that needs it.
const KEPT: u64 = 512 << 20;
/// CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
const RELEASE_THRESHOLD: c_uint = 4;

/// The pool of a handle. What is not freed yet when it is dropped stays until it is.
pub(crate) struct Pool {
    driver: &'static Driver,
    raw: hipMemPool_t,
}

// SAFETY: a handle that belongs to no thread ("the CUDA driver API is thread-safe").
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: destroyed once. A failure leaves nothing to do.
        let _ = unsafe { self.driver.cuMemPoolDestroy(self.raw) };
    }
}

fn pool(handle: &Handle, driver: &'static Driver) -> Result<hipMemPool_t> {
    if let Some(pool) = handle.scratch.get() {
        return Ok(pool.raw);
    }
    let properties = hipMemPoolProps {
        allocType: hipMemAllocationType::hipMemAllocationTypePinned,
        location: hipMemLocation {
            type_: hipMemLocationType::hipMemLocationTypeDevice,
            id: handle.device().ordinal,
        },
        ..hipMemPoolProps::default()
    };
    let mut raw = std::ptr::null_mut();
    // SAFETY: writes one handle to the address given; the properties outlive the call.
    unsafe { driver.cuMemPoolCreate(&mut raw, &properties) }.map_err(from_hip)?;
    let pool = Pool { driver, raw };
    let mut kept = KEPT;
    // SAFETY: the pool is alive, and this attribute is a number of 64 bits.
    unsafe { driver.cuMemPoolSetAttribute(raw, RELEASE_THRESHOLD, (&raw mut kept).cast()) }.map_err(from_hip)?;
    Ok(handle.scratch.get_or_init(|| pool).raw)
}

/// Freed in stream order when dropped: work that was queued before may still use it.
pub(crate) struct Scratch<T> {
    driver: &'static Driver,
    at: *mut c_void,
    stream: hipStream_t,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Room for `len` elements, at least one.
    pub(crate) fn new(handle: &Handle, len: usize) -> Result<Self> {
        let driver = handle.begin()?;
        let stream = handle.stream();
        let bytes = len.max(1) * size_of::<T>();
        let pool = pool(handle, driver)?;
        let mut found = 0;
        // SAFETY: writes one address to the place given; the stream and the pool are the handle's.
        unsafe { driver.cuMemAllocFromPoolAsync(&mut found, bytes, pool, stream) }.map_err(from_hip)?;
        Ok(Self {
            driver,
            at: pointer(found),
            stream,
            of: PhantomData,
        })
    }

    pub(crate) fn at(&self) -> *mut T {
        self.at.cast()
    }

    /// Copies the first `len` elements, in stream order.
    ///
    /// # Safety
    /// There are so many, and room for them at `to`, which is device memory.
    pub(crate) unsafe fn copy_to(&self, to: *mut T, len: usize) -> Result {
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
pub(crate) unsafe fn clear(handle: &Handle, at: *mut i32, len: usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe { handle.begin()?.cuMemsetD32Async(address(at), 0, len, handle.stream()) }.map_err(from_hip)
}
