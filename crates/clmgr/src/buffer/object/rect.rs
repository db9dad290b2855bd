//! Boxes of elements in a buffer, and their copies.

use std::ffi::c_void;

use bytemuck::Pod;

use super::{MemRef, Object, Wish};
use crate::api::slot;
use crate::error::{Error, Result, check};
use crate::event::Event;
use crate::queue::Queue;

/// The position of a box of elements in memory. All sizes are in elements; x runs fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxLayout {
    /// The first element of the box: x, y, z.
    pub origin: [usize; 3],
    /// From one row to the next.
    pub row_pitch: usize,
    /// From one slice to the next, a multiple of the row pitch.
    pub slice_pitch: usize,
}

impl BoxLayout {
    /// Rows that follow each other by `row_pitch` elements, from `x`, `y` on.
    #[must_use]
    pub const fn rows(x: usize, y: usize, row_pitch: usize) -> Self {
        Self {
            origin: [x, y, 0],
            row_pitch,
            slice_pitch: 0,
        }
    }

    /// A box of this extent that fills its memory without gaps.
    #[must_use]
    pub const fn dense(extent: [usize; 3]) -> Self {
        Self {
            origin: [0; 3],
            row_pitch: extent[0],
            slice_pitch: extent[0].saturating_mul(extent[1]),
        }
    }

    /// In bytes, for memory of `len` elements, or why the box does not lie in it.
    fn checked<T>(&self, what: &'static str, extent: [usize; 3], len: usize) -> Result<Bytes> {
        let [width, height, depth] = extent;
        let refused = |reason: String| Err(Error::Region { what, reason });
        // A slice pitch of zero stands for that of one slice, which need not be given.
        let slice_pitch = match self.slice_pitch {
            0 if depth == 1 && self.origin[2] == 0 => match self.row_pitch.checked_mul(height) {
                Some(pitch) => pitch,
                None => return refused("one slice exceeds the address space".to_owned()),
            },
            pitch => pitch,
        };
        let [x, y, z] = self.origin;
        let end = (|| {
            let last_row = y.checked_add(height)?.checked_sub(1)?;
            let last_slice = z.checked_add(depth)?.checked_sub(1)?;
            last_slice
                .checked_mul(slice_pitch)?
                .checked_add(last_row.checked_mul(self.row_pitch)?)?
                .checked_add(x)?
                .checked_add(width)
        })();
        if x.checked_add(width).is_none_or(|end| end > self.row_pitch) {
            return refused(format!(
                "{width} elements from element {x} exceed a row of {}",
                self.row_pitch
            ));
        }
        let rows = self.row_pitch.checked_mul(height);
        if rows.is_none_or(|rows| slice_pitch < rows) || slice_pitch % self.row_pitch != 0 {
            return refused(format!(
                "a slice of {slice_pitch} elements does not hold {height} whole rows of {} elements",
                self.row_pitch
            ));
        }
        match end {
            Some(end) if end <= len => Ok(Bytes {
                origin: [x * size_of::<T>(), y, z],
                row: self.row_pitch.saturating_mul(size_of::<T>()),
                slice: slice_pitch.saturating_mul(size_of::<T>()),
            }),
            _ => refused(format!(
                "the box {extent:?} at {:?} ends beyond the {len} elements of the memory",
                self.origin
            )),
        }
    }
}

/// A [`BoxLayout`] as OpenCL takes it: x and the pitches in bytes.
struct Bytes {
    origin: [usize; 3],
    row: usize,
    slice: usize,
}

/// The extent as OpenCL takes it, or that it is empty.
fn region<T>(extent: [usize; 3]) -> Result<[usize; 3]> {
    if extent.contains(&0) {
        return Err(Error::Zero {
            what: "the extent of a box",
        });
    }
    let width = extent[0].checked_mul(size_of::<T>());
    let width = width.ok_or_else(|| Error::Region {
        what: "the copy of a box",
        reason: "one row exceeds the address space".to_owned(),
    })?;
    Ok([width, extent[1], extent[2]])
}

impl<T: Pod> Object<T> {
    pub fn read_box(
        &self,
        queue: &Queue,
        extent: [usize; 3],
        here: BoxLayout,
        out: &mut [T],
        there: BoxLayout,
    ) -> Result<()> {
        let region = region::<T>(extent)?;
        let buffer = here.checked::<T>("reading a buffer", extent, self.len())?;
        let host = there.checked::<T>("the host memory of a read", extent, out.len())?;
        let read = slot!(self.context().api(), clEnqueueReadBufferRect)?;
        self.allow(Wish::Read)?;
        self.settle(queue, false)?;
        let before = queue.enqueued();
        // SAFETY: queue and buffer are alive and of one context; the box lies in the buffer and in
        // `out`; the call blocks.
        let code = unsafe {
            read(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                buffer.origin.as_ptr(),
                host.origin.as_ptr(),
                region.as_ptr(),
                buffer.row,
                buffer.slice,
                host.row,
                host.slice,
                out.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clEnqueueReadBufferRect({region:?})"))?;
        queue.mark_ended(before);
        Ok(())
    }

    /// Enqueues a copy of the box at `here` to `there` in `out`, a place and its number of elements.
    ///
    /// # Safety
    ///
    /// `out` may be written until the command has ended.
    pub unsafe fn read_box_into(
        &self,
        queue: &Queue,
        extent: [usize; 3],
        here: BoxLayout,
        out: (*mut c_void, usize),
        there: BoxLayout,
    ) -> Result<Event> {
        let region = region::<T>(extent)?;
        let buffer = here.checked::<T>("the source of a copy", extent, self.len())?;
        let host = there.checked::<T>("the destination of a copy", extent, out.1)?;
        let read = slot!(self.context().api(), clEnqueueReadBufferRect)?;
        self.allow(Wish::Read)?;
        self.settle(queue, false)?;
        self.enqueue(
            queue,
            "clEnqueueReadBufferRect",
            // SAFETY: queue and buffer are alive and of one context; the box lies in the buffer and
            // in `out`, for which the caller answers.
            |event| unsafe {
                read(
                    queue.raw(),
                    self.raw(),
                    opencl_sys::CL_FALSE,
                    buffer.origin.as_ptr(),
                    host.origin.as_ptr(),
                    region.as_ptr(),
                    buffer.row,
                    buffer.slice,
                    host.row,
                    host.slice,
                    out.0,
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || format!("{region:?}"),
        )
    }

    pub fn write_box(
        &mut self,
        queue: &Queue,
        extent: [usize; 3],
        here: BoxLayout,
        data: &[T],
        there: BoxLayout,
    ) -> Result<()> {
        let region = region::<T>(extent)?;
        let buffer = here.checked::<T>("writing a buffer", extent, self.len())?;
        let host = there.checked::<T>("the host memory of a write", extent, data.len())?;
        let write = slot!(self.context().api(), clEnqueueWriteBufferRect)?;
        self.allow(Wish::Write)?;
        self.settle(queue, true)?;
        // SAFETY: as in `read_box`; `data` is only read.
        let code = unsafe {
            write(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                buffer.origin.as_ptr(),
                host.origin.as_ptr(),
                region.as_ptr(),
                buffer.row,
                buffer.slice,
                host.row,
                host.slice,
                data.as_ptr().cast(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check(code, || format!("clEnqueueWriteBufferRect({region:?})"))?;
        // A blocking write need only have read `data` when it returns, and the wait may fail.
        self.note_use(queue);
        queue.drain()
    }

    pub fn copy_box_from(
        &mut self,
        queue: &Queue,
        extent: [usize; 3],
        to: BoxLayout,
        source: MemRef<'_, T>,
        from: BoxLayout,
    ) -> Result<Event> {
        let source = source.0;
        let region = region::<T>(extent)?;
        let target = to.checked::<T>("the destination of a copy", extent, self.len())?;
        let origin = from.checked::<T>("the source of a copy", extent, source.len())?;
        let copy = slot!(self.context().api(), clEnqueueCopyBufferRect)?;
        self.settle(queue, true)?;
        source.settle(queue, false)?;
        let event = self.enqueue(
            queue,
            "clEnqueueCopyBufferRect",
            // SAFETY: the queue and both buffers are alive and of one context, and the box lies in
            // both.
            |event| unsafe {
                copy(
                    queue.raw(),
                    source.raw(),
                    self.raw(),
                    origin.origin.as_ptr(),
                    target.origin.as_ptr(),
                    region.as_ptr(),
                    origin.row,
                    origin.slice,
                    target.row,
                    target.slice,
                    0,
                    std::ptr::null(),
                    event,
                )
            },
            || format!("{region:?}"),
        )?;
        source.usage().note(queue, queue.enqueued());
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_that_leaves_its_memory_its_row_or_its_slice_is_refused() {
        let fits = |layout: BoxLayout, extent, len| layout.checked::<f32>("x", extent, len).is_ok();
        let rows = BoxLayout::rows(2, 1, 10);
        assert!(fits(rows, [8, 3, 1], 40) && !fits(rows, [8, 3, 1], 39));
        assert!(!fits(rows, [9, 3, 1], 400), "beyond the row");
        let dense = BoxLayout::dense([4, 3, 2]);
        assert!(fits(dense, [4, 3, 2], 24) && !fits(dense, [4, 3, 2], 23));
        let ragged = BoxLayout {
            slice_pitch: 13,
            ..dense
        };
        assert!(!fits(ragged, [4, 3, 2], 100), "slices of no whole rows");
        assert!(!fits(BoxLayout::rows(0, 0, 4), [4, 3, 2], 100), "no slice pitch");
    }

    #[test]
    fn boxes_that_overflow_are_refused() {
        let huge = BoxLayout {
            origin: [1, usize::MAX, usize::MAX],
            row_pitch: usize::MAX,
            slice_pitch: usize::MAX,
        };
        assert!(huge.checked::<f32>("x", [1, 1, 1], usize::MAX).is_err());
        assert!(
            BoxLayout::rows(usize::MAX, 0, 8)
                .checked::<f32>("x", [1, 1, 1], 8)
                .is_err()
        );
        assert!(region::<f32>([usize::MAX, 1, 1]).is_err());
        assert!(region::<f32>([0, 1, 1]).is_err());
    }
}
