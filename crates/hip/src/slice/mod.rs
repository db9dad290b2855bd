//! Permission to use memory on one stream, and what can be done with it there.

mod rect;
mod view;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;
use hip_sys::hipMemcpyKind;

use crate::call::call;
use crate::{Error, Result, Stream};

/// Whose memory a slice shows, which decides whether and how HIP may copy it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Device,
    /// HIP knows it, on the device or on the host.
    Known,
    /// Memory that HIP did not allocate and may treat as the CPU's own.
    Foreign,
}

/// Permission to read device memory on one stream.
///
/// Every safe operation that takes it runs on that stream or refuses with [`Error::WrongStream`].
pub struct DeviceSlice<'a, T> {
    pointer: *const T,
    len: usize,
    stream: &'a Stream,
    origin: Origin,
    memory: PhantomData<&'a [T]>,
}

/// Permission to read and write device memory on one stream.
pub struct DeviceSliceMut<'a, T> {
    pointer: *mut T,
    len: usize,
    stream: &'a Stream,
    origin: Origin,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: like `&[T]`: it gives shared, read-only access to plain data, and a stream may be used from any thread.
unsafe impl<T: Sync> Send for DeviceSlice<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for DeviceSlice<'_, T> {}
// SAFETY: like `&mut [T]`: it gives exclusive access to plain data, and a stream may be used from any thread.
unsafe impl<T: Send> Send for DeviceSliceMut<'_, T> {}
// SAFETY: a shared reference to it only gives read access; launching through one is `unsafe`.
unsafe impl<T: Sync> Sync for DeviceSliceMut<'_, T> {}

impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<'a, T> DeviceSlice<'a, T> {
    /// A slice of memory that another runtime owns (OpenCL, for example). Kernels, rocBLAS and rocSOLVER take it; HIP's
    /// own copies refuse it with [`Error::ForeignMemory`].
    ///
    /// # Safety
    ///
    /// For `'a`: `len` elements at `pointer` can be read by the device of `stream`, hold values of `T`, and are neither
    /// freed nor written except by work that is ordered against `stream`. What is queued while the slice lives may
    /// still run after `'a`; the memory must stay valid until `stream` has completed it.
    #[must_use]
    pub unsafe fn from_raw_parts(pointer: *const T, len: usize, stream: &'a Stream) -> Self {
        Self::with_origin(pointer, len, stream, Origin::Foreign)
    }

    /// A slice of memory that HIP allocated, registered or imported itself, so HIP may copy it.
    ///
    /// # Safety
    ///
    /// As [`DeviceSlice::from_raw_parts`], and `hipPointerGetAttributes` knows the memory as the runtime's own.
    #[must_use]
    pub unsafe fn from_hip_raw_parts(pointer: *const T, len: usize, stream: &'a Stream) -> Self {
        Self::with_origin(pointer, len, stream, Origin::Known)
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The address of the pointer itself, for a kernel's parameter list.
    pub(crate) fn pointer_address(&self) -> *mut c_void {
        (&raw const self.pointer).cast_mut().cast()
    }

    pub(crate) fn with_origin(pointer: *const T, len: usize, stream: &'a Stream, origin: Origin) -> Self {
        Self {
            pointer,
            len,
            stream,
            origin,
            memory: PhantomData,
        }
    }

    /// The device address.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.pointer
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether another runtime owns the memory, so HIP must not copy it: see [`DeviceSlice::from_raw_parts`].
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.origin == Origin::Foreign
    }

    /// The stream it may be used on.
    #[must_use]
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// A part of it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'a, T>> {
        let (start, len) = resolve(range, self.len)?;
        Ok(Self {
            pointer: self.pointer.wrapping_add(start),
            len,
            ..*self
        })
    }

    /// Copies the elements to the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// Different lengths, foreign memory, or earlier work of the stream failed.
    #[doc(alias = "hipMemcpyAsync")]
    pub fn copy_to_slice(&self, destination: &mut [T]) -> Result<()>
    where
        T: Pod,
    {
        const CALL: &str = "copy_to_slice";
        same_len(CALL, self.len, destination.len())?;
        self.stream
            .not_recording("a copy to host memory that is not page-locked")?;
        let kind = kind(CALL, self.origin, hipMemcpyKind::hipMemcpyDeviceToHost)?;
        // SAFETY: `self` can be read for its length, `destination` written for the same, both by their types, and the
        // host memory cannot overlap what a slice of the device may read.
        unsafe { copy_and_wait(destination.as_mut_ptr(), self.pointer, self.len, kind, self.stream) }
    }
}

impl<'a, T> DeviceSliceMut<'a, T> {
    /// A slice of memory that another runtime owns (OpenCL, for example). Kernels, rocBLAS and rocSOLVER take it; HIP's
    /// own copies refuse it with [`Error::ForeignMemory`].
    ///
    /// # Safety
    ///
    /// For `'a`: `len` elements at `pointer` can be read and written by the device of `stream`, hold values of `T`, and
    /// are neither freed nor used except by work that is ordered against `stream`. What is queued while the slice lives
    /// may still run after `'a`; the memory must stay valid until `stream` has completed it.
    #[must_use]
    pub unsafe fn from_raw_parts(pointer: *mut T, len: usize, stream: &'a Stream) -> Self {
        Self::with_origin(pointer, len, stream, Origin::Foreign)
    }

    /// A slice of memory that HIP allocated, registered or imported itself, so HIP may copy it.
    ///
    /// # Safety
    ///
    /// As [`DeviceSliceMut::from_raw_parts`], and `hipPointerGetAttributes` knows the memory as the runtime's own.
    #[must_use]
    pub unsafe fn from_hip_raw_parts(pointer: *mut T, len: usize, stream: &'a Stream) -> Self {
        Self::with_origin(pointer, len, stream, Origin::Known)
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The address of the pointer itself, for a kernel's parameter list.
    pub(crate) fn pointer_address(&self) -> *mut c_void {
        (&raw const self.pointer).cast_mut().cast()
    }

    pub(crate) fn with_origin(pointer: *mut T, len: usize, stream: &'a Stream, origin: Origin) -> Self {
        Self {
            pointer,
            len,
            stream,
            origin,
            memory: PhantomData,
        }
    }

    /// The device address.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.pointer
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream it may be used on.
    #[must_use]
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// The same memory to read, for as long as this slice is not used otherwise.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::with_origin(self.pointer, self.len, self.stream, self.origin)
    }

    /// The same memory to read from now on.
    #[must_use]
    pub fn into_slice(self) -> DeviceSlice<'a, T> {
        DeviceSlice::with_origin(self.pointer, self.len, self.stream, self.origin)
    }

    /// The same slice for a shorter time, to pass on without losing this one.
    #[must_use]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::with_origin(self.pointer, self.len, self.stream, self.origin)
    }

    /// A part of it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        let (start, len) = resolve(range, self.len)?;
        Ok(DeviceSliceMut::with_origin(
            self.pointer.wrapping_add(start),
            len,
            self.stream,
            self.origin,
        ))
    }

    /// Two parts, `0..middle` and `middle..len()`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if `middle` is more than the length.
    pub fn split_at_mut(self, middle: usize) -> Result<(DeviceSliceMut<'a, T>, DeviceSliceMut<'a, T>)> {
        let (start, len) = resolve(middle.., self.len)?;
        Ok((
            Self::with_origin(self.pointer, middle, self.stream, self.origin),
            Self::with_origin(self.pointer.wrapping_add(start), len, self.stream, self.origin),
        ))
    }

    /// Copies the elements from the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// Different lengths, foreign memory, or earlier work of the stream failed.
    #[doc(alias = "hipMemcpyAsync")]
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()>
    where
        T: Pod,
    {
        const CALL: &str = "copy_from_slice";
        same_len(CALL, source.len(), self.len)?;
        self.stream
            .not_recording("a copy from host memory that is not page-locked")?;
        let kind = kind(CALL, self.origin, hipMemcpyKind::hipMemcpyHostToDevice)?;
        // SAFETY: `source` can be read for its length, `self` written for the same, both by their types, and the host
        // memory cannot overlap what a slice of the device may write.
        unsafe { copy_and_wait(self.pointer, source.as_ptr(), self.len, kind, self.stream) }
    }

    /// Copies the elements of another slice of the same stream, in stream order. The host does not wait.
    ///
    /// # Errors
    ///
    /// Different lengths or streams, foreign memory, or HIP refused the copy.
    #[doc(alias = "hipMemcpyAsync")]
    pub fn copy_from(&mut self, source: DeviceSlice<'_, T>) -> Result<()>
    where
        T: Pod,
    {
        const CALL: &str = "copy_from";
        same_len(CALL, source.len, self.len)?;
        if source.stream != self.stream {
            return Err(Error::WrongStream {
                call: CALL,
                argument: "source".to_owned(),
            });
        }
        kind(CALL, source.origin, hipMemcpyKind::hipMemcpyDefault)?;
        let kind = match kind(CALL, self.origin, hipMemcpyKind::hipMemcpyDefault)? {
            _ if source.origin == Origin::Device && self.origin == Origin::Device => {
                hipMemcpyKind::hipMemcpyDeviceToDevice
            }
            unknown => unknown,
        };
        // SAFETY: both can be accessed by the stream's device for their equal lengths, stay valid until the stream has
        // done the copy, and do not overlap: `self` is exclusive.
        unsafe { copy(self.pointer, source.pointer, self.len, kind, self.stream) }
    }

    /// Sets every byte to zero, in stream order. The host does not wait.
    ///
    /// # Errors
    ///
    /// Foreign memory, or HIP refused the fill.
    #[doc(alias = "hipMemsetAsync")]
    pub fn fill_zero(&mut self) -> Result<()>
    where
        T: Pod,
    {
        kind("fill_zero", self.origin, hipMemcpyKind::hipMemcpyDefault)?;
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        self.stream.device().make_current()?;
        // SAFETY: `self` can be written for its length, and zero bytes are a value of plain data.
        unsafe {
            call!(
                self.stream.device().runtime(),
                hipMemsetAsync(self.pointer.cast::<c_void>(), 0, bytes, self.stream.raw_for_work()?),
                "hipMemsetAsync({:?}, 0, {bytes} bytes)",
                self.pointer
            )
        }
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSlice")
            .field("pointer", &self.pointer)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSliceMut")
            .field("pointer", &self.pointer)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Start and length of a range that lies in `0..len`.
fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end - start)),
        (start, end) => Err(Error::OutOfRange {
            start: start.unwrap_or(usize::MAX),
            end: end.unwrap_or(usize::MAX),
            len,
        }),
    }
}

pub(crate) fn same_len(call: &'static str, source_len: usize, destination_len: usize) -> Result<()> {
    if source_len == destination_len {
        Ok(())
    } else {
        Err(Error::LengthMismatch {
            call,
            source_len,
            destination_len,
        })
    }
}

/// The kind of copy to ask for when one side is `origin`.
pub(crate) fn kind(call: &'static str, origin: Origin, device: hipMemcpyKind) -> Result<hipMemcpyKind> {
    match origin {
        Origin::Device => Ok(device),
        Origin::Known => Ok(hipMemcpyKind::hipMemcpyDefault),
        Origin::Foreign => Err(Error::ForeignMemory { call }),
    }
}

/// Queues a copy; nothing for 0 bytes.
///
/// # Safety
///
/// `len` elements can be read at `source` and written at `destination` until the stream has done the copy, and do not
/// overlap.
unsafe fn copy<T>(
    destination: *mut T,
    source: *const T,
    len: usize,
    kind: hipMemcpyKind,
    stream: &Stream,
) -> Result<()> {
    let bytes = len * size_of::<T>();
    if bytes == 0 {
        return Ok(());
    }
    stream.device().make_current()?;
    // SAFETY: the caller's promise is the callee's demand; the stream is alive.
    unsafe {
        call!(
            stream.device().runtime(),
            hipMemcpyAsync(
                destination.cast::<c_void>(),
                source.cast::<c_void>(),
                bytes,
                kind,
                stream.raw_for_work()?
            ),
            "hipMemcpyAsync({destination:?}, {source:?}, {bytes} bytes, {kind:?})"
        )
    }
}

/// Copies in stream order, and has ended when it returns, with an error too: the host memory is the caller's again.
///
/// A copy that is queued and then waited for cannot promise that. On ROCm the wait is a call of its own, which returns
/// at once when another device of the process has failed meanwhile (hipamd/src/hip_internal.hpp, `HIP_INIT_API`), and
/// the device goes on with page-locked memory. This call waits inside (hipamd/src/hip_memory.cpp, `ihipMemcpy`).
///
/// # Safety
///
/// `len` elements can be read at `source` and written at `destination`, and do not overlap.
unsafe fn copy_and_wait<T>(
    destination: *mut T,
    source: *const T,
    len: usize,
    kind: hipMemcpyKind,
    stream: &Stream,
) -> Result<()> {
    let bytes = len * size_of::<T>();
    let copied = if bytes == 0 {
        Ok(())
    } else {
        stream.device().make_current()?;
        // SAFETY: the caller's promise is the callee's demand; the stream is alive.
        unsafe {
            call!(
                stream.device().runtime(),
                hipMemcpyWithStream(
                    destination.cast::<c_void>(),
                    source.cast::<c_void>(),
                    bytes,
                    kind,
                    stream.raw_for_work()?
                ),
                "hipMemcpyWithStream({destination:?}, {source:?}, {bytes} bytes, {kind:?})"
            )
        }
    };
    // Earlier work of the stream that failed is told by the wait.
    copied.and(stream.wait_out())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::resolve;

    proptest! {
        #[test]
        fn ranges_resolve_as_those_of_a_slice(len in 0_usize..20, start in 0_usize..24, end in 0_usize..24) {
            let memory: Vec<usize> = (0..len).collect();
            let part = memory.get(start..end).map(|part| (start, part.len()));
            prop_assert_eq!(resolve(start..end, len).ok(), part);
            let part = memory.get(start..=end).map(|part| (start, part.len()));
            prop_assert_eq!(resolve(start..=end, len).ok(), part);
            prop_assert_eq!(resolve(start.., len).ok(), memory.get(start..).map(|part| (start, part.len())));
            prop_assert_eq!(resolve(..end, len).ok(), memory.get(..end).map(|part| (0, part.len())));
        }
    }

    #[test]
    fn a_range_that_overflows_is_refused() {
        assert!(resolve(0..=usize::MAX, 4).is_err());
        assert!(resolve(usize::MAX..usize::MAX, 4).is_err());
    }
}
