//! Copies of rectangles: rows that lie apart.

use std::ffi::c_void;

use bytemuck::Pod;
use hip_sys::hipMemcpyKind;

use super::{DeviceSlice, DeviceSliceMut, kind};
use crate::call::call;
use crate::{Error, Rect, Result, Stream};

impl<T: Pod> DeviceSlice<'_, T> {
    /// Copies a rectangle to the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::Rect`], foreign memory, or earlier work of the stream failed.
    #[doc(alias = "hipMemcpy2DAsync")]
    pub fn copy_rect_to_slice(&self, destination: &mut [T], rect: Rect) -> Result<()> {
        const CALL: &str = "copy_rect_to_slice";
        check(rect, CALL, self.len(), destination.len())?;
        self.stream()
            .not_recording("a copy to host memory that is not page-locked")?;
        let kind = kind(CALL, self.origin(), hipMemcpyKind::hipMemcpyDeviceToHost)?;
        // SAFETY: checked to lie in both, which are plain data and apart; neither moves before the stream is waited
        // for.
        let queued = unsafe { copy(destination.as_mut_ptr(), self.as_ptr(), rect, kind, self.stream()) };
        // HIP may have queued a part of what failed.
        queued.and(self.stream().wait_out())
    }
}

impl<T: Pod> DeviceSliceMut<'_, T> {
    /// Copies a rectangle from the host. Complete when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::Rect`], foreign memory, or earlier work of the stream failed.
    #[doc(alias = "hipMemcpy2DAsync")]
    pub fn copy_rect_from_slice(&mut self, source: &[T], rect: Rect) -> Result<()> {
        const CALL: &str = "copy_rect_from_slice";
        check(rect, CALL, source.len(), self.len())?;
        self.stream()
            .not_recording("a copy from host memory that is not page-locked")?;
        let kind = kind(CALL, self.origin(), hipMemcpyKind::hipMemcpyHostToDevice)?;
        // SAFETY: checked to lie in both, which are plain data and apart; neither moves before the stream is waited
        // for.
        let queued = unsafe { copy(self.as_mut_ptr(), source.as_ptr(), rect, kind, self.stream()) };
        // HIP may have queued a part of what failed.
        queued.and(self.stream().wait_out())
    }

    /// Copies a rectangle of another slice of the same stream, in stream order. The host does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Rect`], different streams, foreign memory, or HIP refused the copy.
    #[doc(alias = "hipMemcpy2DAsync")]
    pub fn copy_rect_from(&mut self, source: DeviceSlice<'_, T>, rect: Rect) -> Result<()> {
        const CALL: &str = "copy_rect_from";
        check(rect, CALL, source.len(), self.len())?;
        if source.stream() != self.stream() {
            return Err(Error::WrongStream {
                call: CALL,
                argument: "source".to_owned(),
            });
        }
        kind(CALL, source.origin(), hipMemcpyKind::hipMemcpyDefault)?;
        kind(CALL, self.origin(), hipMemcpyKind::hipMemcpyDefault)?;
        // SAFETY: checked to lie in both, which are plain data; `self` is exclusive, so they are apart, and both stay
        // until the stream has done the copy.
        unsafe {
            copy(
                self.as_mut_ptr(),
                source.as_ptr(),
                rect,
                hipMemcpyKind::hipMemcpyDefault,
                self.stream(),
            )
        }
    }
}

fn check(rect: Rect, call: &'static str, source_len: usize, destination_len: usize) -> Result<()> {
    if rect.fits(source_len, destination_len) {
        Ok(())
    } else {
        Err(Error::Rect {
            call,
            rect,
            source_len,
            destination_len,
        })
    }
}

/// # Safety
///
/// The rectangle lies in what is behind both pointers until the stream has done the copy, and the two do not overlap.
unsafe fn copy<T>(
    destination: *mut T,
    source: *const T,
    rect: Rect,
    kind: hipMemcpyKind,
    stream: &Stream,
) -> Result<()> {
    let size = size_of::<T>();
    // Only a rectangle with elements is known to fit in memory, so its sizes can be multiplied.
    if [rect.width, rect.height, size].contains(&0) {
        return Ok(());
    }
    // A single row has no pitch that matters, and `check` says nothing about how large it is.
    let pitch = |pitch: usize| if rect.height == 1 { rect.width } else { pitch } * size;
    stream.device().make_current()?;
    // SAFETY: the caller's promise is the callee's demand; the stream is alive.
    unsafe {
        call!(
            stream.device().runtime(),
            hipMemcpy2DAsync(
                destination.cast::<c_void>(),
                pitch(rect.destination_pitch),
                source.cast::<c_void>(),
                pitch(rect.source_pitch),
                rect.width * size,
                rect.height,
                kind,
                stream.raw_for_work()?
            ),
            "hipMemcpy2DAsync({destination:?}, {source:?}, {rect:?} of {size} bytes, {kind:?})"
        )
    }
}
