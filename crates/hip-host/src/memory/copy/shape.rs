//! Rows and slices of bytes.

use hip_sys::hipError_t;

use crate::error::Result;
use crate::workers;

/// How rows lie on one side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes from row to row.
    pub(crate) pitch: usize,
    /// Bytes from slice to slice.
    pub(crate) slice: usize,
}

/// `depth` slices of `height` rows of `width` bytes. A plain copy is one row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) to: Layout,
    pub(crate) from: Layout,
}

/// Bytes of one piece when several threads share a copy.
const PIECE: usize = 4 << 20;

impl Shape {
    pub(crate) fn row(width: usize) -> Self {
        let layout = Layout {
            pitch: width,
            slice: width,
        };
        Self {
            width,
            height: 1,
            depth: 1,
            to: layout,
            from: layout,
        }
    }

    /// One slice.
    ///
    /// # Errors
    /// `hipErrorInvalidPitchValue` if a row does not fit its pitch.
    pub(crate) fn rows(width: usize, height: usize, to_pitch: usize, from_pitch: usize) -> Result<Self> {
        if width != 0 && height != 0 && (width > to_pitch || width > from_pitch) {
            return Err(hipError_t::hipErrorInvalidPitchValue);
        }
        Ok(Self {
            width,
            height,
            depth: 1,
            to: Layout {
                pitch: to_pitch,
                slice: 0,
            },
            from: Layout {
                pitch: from_pitch,
                slice: 0,
            },
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Bytes from the first to the last byte touched on a side. The shape is not empty.
    pub(crate) fn extent(&self, side: Layout) -> Result<usize> {
        let slices = (self.depth - 1).checked_mul(side.slice);
        let rows = (self.height - 1).checked_mul(side.pitch);
        slices
            .zip(rows)
            .and_then(|(slices, rows)| slices.checked_add(rows))
            .and_then(|before| before.checked_add(self.width))
            .ok_or(hipError_t::hipErrorInvalidValue)
    }

    /// # Safety
    /// `to` and `from` are valid for the shape's extent with their layouts, for writing and reading.
    pub(crate) unsafe fn copy(&self, to: usize, from: usize) {
        let apart = to.abs_diff(from) >= self.width;
        if self.height == 1 && self.depth == 1 && apart && self.width > 2 * PIECE {
            // SAFETY: the caller's word; the sides do not overlap.
            unsafe { self.copy_row_in_pieces(to, from) };
            return;
        }
        for slice in 0..self.depth {
            for row in 0..self.height {
                // SAFETY: each row lies in the extent the caller vouches for; overlapping sides are allowed by `copy`.
                unsafe {
                    std::ptr::copy(
                        (from + slice * self.from.slice + row * self.from.pitch) as *const u8,
                        (to + slice * self.to.slice + row * self.to.pitch) as *mut u8,
                        self.width,
                    );
                }
            }
        }
    }

    /// # Safety
    /// As [`copy`](Self::copy), and the two rows do not overlap.
    unsafe fn copy_row_in_pieces(&self, to: usize, from: usize) {
        let pieces = self.width.div_ceil(PIECE);
        workers::for_each(pieces as u64, 1, &|pieces| {
            let start = pieces.start as usize * PIECE;
            let end = (pieces.end as usize * PIECE).min(self.width);
            // SAFETY: a part of the row, valid as the whole is; parts do not overlap, and neither do the two sides.
            unsafe {
                std::ptr::copy_nonoverlapping((from + start) as *const u8, (to + start) as *mut u8, end - start);
            }
        });
    }
}
