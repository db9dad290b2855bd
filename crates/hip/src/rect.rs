/// A rectangle to copy, in elements: `height` rows of `width` elements each.
///
/// A row of the source begins `source_pitch` elements after the one before, a row of the destination
/// `destination_pitch`. For a part of a column-major matrix, a row here is a column there and the pitch is its leading
/// dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Elements from one row of the source to the next, at least `width`.
    pub source_pitch: usize,
    /// Elements from one row of the destination to the next, at least `width`.
    pub destination_pitch: usize,
}

impl Rect {
    /// Elements from the first to after the last, where rows are `pitch` apart.
    fn reach(&self, pitch: usize) -> Option<usize> {
        if self.width == 0 || self.height == 0 {
            return Some(0);
        }
        (pitch >= self.width)
            .then(|| (self.height - 1).checked_mul(pitch)?.checked_add(self.width))
            .flatten()
    }

    /// Whether it lies in both.
    pub(crate) fn fits(&self, source_len: usize, destination_len: usize) -> bool {
        let fits = |pitch, len| self.reach(pitch).is_some_and(|reach| reach <= len);
        fits(self.source_pitch, source_len) && fits(self.destination_pitch, destination_len)
    }
}
