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
        kind(CALL, self.origin(), hipMemcpyKind::hipMemcpyDefault)?;
        bands::<T>(rect, |band, from, to| {
            let packed = Rect {
                destination_pitch: rect.width,
                ..band
            };
            let mut rows = self.stream().device().alloc_pinned(band.height * rect.width)?;
            rows.on_mut(self.stream())?
                .copy_rect_from(self.slice(from..)?, packed)?;
            let rows = rows.host()?.chunks_exact(rect.width);
            // The last row may be shorter than the pitch.
            let destination = destination[to..].chunks_mut(rect.destination_pitch);
            for (destination, row) in destination.zip(rows) {
                destination[..rect.width].copy_from_slice(row);
            }
            Ok(())
        })
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
        kind(CALL, self.origin(), hipMemcpyKind::hipMemcpyDefault)?;
        let stream = self.stream();
        bands::<T>(rect, |band, from, to| {
            let packed = Rect {
                source_pitch: rect.width,
                ..band
            };
            let mut rows = stream.device().alloc_pinned(band.height * rect.width)?;
            let source = source[from..].chunks(rect.source_pitch);
            for (row, source) in rows.host_mut()?.chunks_exact_mut(rect.width).zip(source) {
                row.copy_from_slice(&source[..rect.width]);
            }
            self.slice_mut(to..)?.copy_rect_from(rows.on(stream)?, packed)?;
            rows.host_mut().map(|_| ())
        })
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

/// Bytes of the host's rows that are copied at a time, or one row.
const BAND: usize = 16 << 20;

/// Calls `copy` with parts of `rect`, whole rows of at most [`BAND`] bytes, and the elements of the source and of the
/// destination before them.
///
/// The parts pass through page-locked memory of this crate, which is leaked if HIP cannot tell whether the device still
/// uses it. The caller's memory cannot be, and HIP has no call that copies a rectangle in stream order and waits.
fn bands<T: Pod>(rect: Rect, mut copy: impl FnMut(Rect, usize, usize) -> Result<()>) -> Result<()> {
    // Only a rectangle with elements is known to fit in memory, so its sizes can be multiplied.
    if [rect.width, rect.height, size_of::<T>()].contains(&0) {
        return Ok(());
    }
    let most = (BAND / (rect.width * size_of::<T>())).max(1);
    for first in (0..rect.height).step_by(most) {
        let height = most.min(rect.height - first);
        copy(
            Rect { height, ..rect },
            first * rect.source_pitch,
            first * rect.destination_pitch,
        )?;
    }
    Ok(())
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
