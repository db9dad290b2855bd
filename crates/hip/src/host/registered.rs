use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use bytemuck::Pod;

use super::memory::HostMemory;
use crate::call::call;
use crate::{Device, DeviceSlice, DeviceSliceMut, Error, Result, Stream, report};

/// Host memory of the caller, page-locked so that the device can reach it. [`with_registered`] is the safe way to one.
///
/// The host reads and writes it through [`host`](Self::host) and [`host_mut`](Self::host_mut), which wait for the
/// device; the device through [`on`](Self::on) and [`on_mut`](Self::on_mut). Dropping it waits for the streams that
/// used it, and HIP for all work of every device. If HIP cannot tell whether they have ended, the pages stay registered,
/// and the error is deferred ([`Runtime::take_deferred_errors`](crate::Runtime::take_deferred_errors)).
#[doc(alias = "hipHostRegister")]
pub struct Registered<'a, T> {
    memory: HostMemory<T>,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: like `&mut [T]`; page-locking belongs to the process, not to a thread.
unsafe impl<T: Send> Send for Registered<'_, T> {}
// SAFETY: shared access only reads; the record of uses is behind a lock.
unsafe impl<T: Sync> Sync for Registered<'_, T> {}

/// Page-locks `memory` while `work` runs. Afterwards the device has finished with it.
///
/// If HIP cannot tell whether it has (ROCm answers no call any more once a device of the process has failed, while the
/// others go on), the device may still write the memory; if HIP cannot end the registration, it keeps the pages. Then the
/// memory is leaked, `memory` is empty afterwards, and the error is returned, or deferred if `work` panics.
///
/// ```
/// # use std::sync::Arc;
/// # // SAFETY: the table comes from one platform.
/// # let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }?;
/// # let device = runtime.device(0)?;
/// # let stream = device.stream()?;
/// let mut numbers = vec![7_u32; 1000];
/// hip::with_registered(&device, &mut numbers, |mut registered| registered.on_mut(&stream)?.fill_zero())??;
/// assert!(numbers.iter().all(|&number| number == 0));
/// # Ok::<(), hip::Error>(())
/// ```
///
/// Nothing of it can be kept:
///
/// ```compile_fail,E0521
/// fn keep<'a>(device: &hip::Device, memory: &mut Vec<f32>, stream: &'a hip::Stream) {
///     let mut kept = None;
///     let _ = hip::with_registered(device, memory, |mut registered| kept = registered.on_mut(stream).ok());
/// }
/// ```
///
/// Nor can it change places with other registered memory, whose vector would be the caller's again while the device
/// still writes it:
///
/// ```compile_fail,E0596
/// fn exchange(device: &hip::Device, one: &mut Vec<f32>, other: &mut Vec<f32>) {
///     let _ = hip::with_registered(device, one, |mut one| {
///         hip::with_registered(device, other, |mut other| std::mem::swap(&mut *one, &mut *other))
///     });
/// }
/// ```
///
/// # Errors
///
/// The memory could not be page-locked (no call of `work` then), a stream that used it failed, or HIP could not end the
/// registration.
#[doc(alias("hipHostRegister", "hipHostUnregister"))]
pub fn with_registered<T: Pod, R>(
    device: &Device,
    memory: &mut Vec<T>,
    work: impl FnOnce(RegisteredMut<'_, '_, T>) -> R,
) -> Result<R> {
    // SAFETY: the elements of a vector, which stay where they are until `Lent` gives them back.
    let elements = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr(), memory.len()) };
    // SAFETY: `work` can neither keep nor exchange what it is lent, so `Lent` ends this registration, on unwinding too,
    // before the vector is the caller's again.
    let registered = match unsafe { Registered::register(device, elements) } {
        Ok(registered) => registered,
        Err(refused) => {
            if refused.is_registered {
                withhold(memory);
            }
            return Err(refused.error);
        }
    };
    let mut lent = Lent {
        registered: ManuallyDrop::new(registered),
        owner: memory,
    };
    let result = work(RegisteredMut(&mut lent.registered));
    lent.registered.memory.uses.wait_for_all()?;
    lent.give_back()?;
    Ok(result)
}

/// Exclusive access to the memory that [`with_registered`] page-locked.
///
/// It reads as [`Registered`]. It lends no `&mut Registered`, by which the owner of the registration could be replaced.
pub struct RegisteredMut<'r, 'a, T>(&'r mut Registered<'a, T>);

impl<T> RegisteredMut<'_, '_, T> {
    /// The memory to write on `stream`, which is made to wait for everything that other streams do with it.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on_mut<'s>(&'s mut self, stream: &'s Stream) -> Result<DeviceSliceMut<'s, T>> {
        self.0.on_mut(stream)
    }

    /// The memory to write on the host. Blocks until the device has finished using it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed.
    pub fn host_mut(&mut self) -> Result<&mut [T]> {
        self.0.host_mut()
    }
}

impl<'a, T> Deref for RegisteredMut<'_, 'a, T> {
    type Target = Registered<'a, T>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl<T> fmt::Debug for RegisteredMut<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A vector whose elements are registered. On drop it is its owner's again, or empty if the device may still use them.
struct Lent<'a, T> {
    registered: ManuallyDrop<Registered<'a, T>>,
    owner: &'a mut Vec<T>,
}

impl<T> Lent<'_, T> {
    /// Ends the registration of memory that no stream uses any more. On an error HIP still has the pages.
    fn give_back(mut self) -> Result<()> {
        let ended = self.registered.unregister();
        if ended.is_err() {
            withhold(self.owner);
        }
        // What is left for `drop` is a registration of nothing.
        self.registered.memory.clear();
        ended
    }
}

/// Leaks the elements: their owner has an empty vector.
fn withhold<T>(owner: &mut Vec<T>) {
    std::mem::forget(std::mem::take(owner));
}

/// Why memory is not registered for the caller.
struct Refused {
    error: Error,
    /// HIP has the pages nevertheless: it would not let go of them.
    is_registered: bool,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_registered: false,
        }
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if !self.registered.end() {
            withhold(self.owner);
        }
        // SAFETY: dropped once, here; what has ended is not ended again.
        unsafe { ManuallyDrop::drop(&mut self.registered) };
    }
}

impl<'a, T: Pod> Registered<'a, T> {
    /// Page-locks `memory`. No call is made for 0 bytes.
    ///
    /// # Safety
    ///
    /// The result has to be dropped before the memory is used again after `'a`. (`std::mem::forget` would end the
    /// borrow while the device may still write, so this cannot be left to the borrow checker.)
    ///
    /// If HIP gives no answer then, the device may use the memory even after the drop. Memory that is freed or reused
    /// after `'a` therefore goes by the answer of [`close`](Self::close).
    ///
    /// # Errors
    ///
    /// HIP could not page-lock it, for example because a part of it is registered already. If HIP would not let go of
    /// the pages again either, that is a deferred error of the runtime, and the memory must not be freed.
    pub unsafe fn new(device: &Device, memory: &'a mut [T]) -> Result<Self> {
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { Self::register(device, memory) }.map_err(|refused| refused.error)
    }

    /// # Safety
    ///
    /// As for [`new`](Self::new).
    unsafe fn register(device: &Device, memory: &'a mut [T]) -> std::result::Result<Self, Refused> {
        let bytes = size_of_val(memory);
        let len = memory.len();
        let host = NonNull::from(memory).cast::<T>();
        if bytes > 0 {
            device.make_current()?;
            // SAFETY: the range is the caller's, borrowed for `'a`, and unregistered before `'a` ends.
            unsafe {
                call!(
                    device.runtime(),
                    hipHostRegister(host.as_ptr().cast::<c_void>(), bytes, hip_sys::hipHostRegisterMapped),
                    "hipHostRegister({host:?}, {bytes} bytes)"
                )?;
            }
        }
        // SAFETY: initialised by its type, page-locked, and borrowed for as long as the result lives.
        match unsafe { HostMemory::new(device, host, len) } {
            Ok(memory) => Ok(Self {
                memory,
                borrowed: PhantomData,
            }),
            Err(error) if bytes == 0 => Err(error.into()),
            Err(error) => {
                let ended = unregister(device, host.as_ptr().cast());
                Err(Refused {
                    error,
                    is_registered: ended.map_err(|error| device.runtime().defer(error)).is_err(),
                })
            }
        }
    }
}

impl<T> Registered<'_, T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that can reach it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// The address for the device. It may differ from the host's.
    #[must_use]
    pub fn device_ptr(&self) -> *mut T {
        self.memory.device_pointer()
    }

    /// The memory to read on `stream`, which is made to wait for the last write.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Result<DeviceSlice<'a, T>> {
        self.memory.on(stream)
    }

    /// The memory to write on `stream`, which is made to wait for everything that other streams do with it.
    ///
    /// # Errors
    ///
    /// The stream belongs to another device, or HIP refused the wait.
    pub fn on_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<DeviceSliceMut<'a, T>> {
        self.memory.on_mut(stream)
    }

    /// The memory to read on the host. Blocks until the device has finished writing it.
    ///
    /// # Errors
    ///
    /// The stream that wrote it failed.
    pub fn host(&self) -> Result<&[T]> {
        self.memory.host()
    }

    /// The memory to write on the host. Blocks until the device has finished using it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed.
    pub fn host_mut(&mut self) -> Result<&mut [T]> {
        self.memory.host_mut()
    }

    /// Ends the registration as dropping does, and returns the error instead of deferring it.
    ///
    /// # Errors
    ///
    /// A stream that used it failed, or HIP would not let go of the pages; the registration comes back. Pages that HIP
    /// still has must not be freed: whatever gets their address later would be taken for them.
    #[expect(
        clippy::result_large_err,
        reason = "the owner comes back, and is as large as an owner is"
    )]
    pub fn close(mut self) -> Result<(), (Error, Self)> {
        let ended = self.memory.uses.wait_for_all();
        if let Err(error) = ended.and_then(|()| self.unregister()) {
            return Err((error, self));
        }
        // What is left for `drop` is a registration of nothing.
        self.memory.clear();
        Ok(())
    }

    /// Ends the registration, and tells whether it is certain that neither device nor HIP uses the memory any more.
    /// Errors are deferred.
    fn end(&mut self) -> bool {
        if !self.memory.uses.settle() {
            report::leaked("registered memory", self.memory.bytes());
            // What the device may write stays mapped for it.
            self.memory.clear();
            return false;
        }
        let ended = self.unregister();
        self.memory.clear();
        ended.map_err(|error| self.memory.device.runtime().defer(error)).is_ok()
    }

    fn unregister(&self) -> Result<()> {
        if self.memory.bytes() == 0 {
            return Ok(());
        }
        unregister(&self.memory.device, self.memory.host_pointer().as_ptr().cast())
    }
}

fn unregister(device: &Device, host: *mut c_void) -> Result<()> {
    device.make_current()?;
    // SAFETY: every caller passes a range it registered, once.
    unsafe { call!(device.runtime(), hipHostUnregister(host), "hipHostUnregister({host:?})") }
}

impl<T> Drop for Registered<'_, T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> fmt::Debug for Registered<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("len", &self.len())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
