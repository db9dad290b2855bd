use std::collections::HashMap;

use rocblas_sys::{rocblas_int, rocblas_stride};

use crate::{Error, Result};

/// A size as the library expects it.
pub(crate) fn int(what: &'static str, value: usize) -> Result<rocblas_int> {
    rocblas_int::try_from(value).map_err(|_| Error::TooLarge { what, value, bits: 32 })
}

/// A stride as the library expects it.
pub(crate) fn stride(value: usize) -> Result<rocblas_stride> {
    rocblas_stride::try_from(value).map_err(|_| Error::TooLarge {
        what: "stride",
        value,
        bits: 64,
    })
}

/// A size that was checked by [`size`], as the library's `_64` functions take it.
#[inline]
pub(crate) fn long(value: usize) -> i64 {
    debug_assert!(i64::try_from(value).is_ok(), "checked when it was given");
    value as i64
}

/// Refuses a size that not even the `_64` functions can take.
#[inline]
pub(crate) fn size(what: &'static str, value: usize) -> Result<()> {
    match i64::try_from(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::TooLarge { what, value, bits: 64 }),
    }
}

/// Sizes of a matrix; public in name only. Checked, all fit 64 bits, and `ld` is at least `rows` and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
}

impl Layout {
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        let Self { rows, cols, ld } = self;
        if ld < rows.max(1) {
            return Err(Error::LeadingDimension { rows, ld });
        }
        size("rows", rows)?;
        size("columns", cols)?;
        size("leading dimension", ld)
    }

    /// Elements from the first to the last; `usize::MAX`, which no slice has, if there are more than an address space
    /// holds.
    #[inline]
    pub(crate) fn span(self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            0
        } else {
            self.ld.saturating_mul(self.cols - 1).saturating_add(self.rows)
        }
    }

    /// The leading dimension for a call that may need no element. Where there is none it does not matter, and a large
    /// one would call for the `_64` function: of rocBLAS 7.2.4 `syrk_64` and `herk_64` leave the result unscaled then.
    pub(crate) fn ld_for_elements(self) -> usize {
        match self.span() {
            0 => self.rows.max(1),
            _ => self.ld,
        }
    }

    /// Elements of `count` matrices `stride` apart, from the first to the last.
    pub(crate) fn batch_span(self, stride: usize, count: usize) -> Option<usize> {
        match (self.span(), count) {
            (0, _) | (_, 0) => Some(0),
            (span, count) => stride.checked_mul(count - 1)?.checked_add(span),
        }
    }

    /// Whether a matrix that starts `offset` elements after another of this layout shares an element with it.
    pub(crate) fn meets(self, offset: usize) -> bool {
        if offset >= self.span() {
            return false;
        }
        let (column, rest) = (offset / self.ld, offset % self.ld);
        let meets_column = column < self.cols && rest < self.rows;
        let meets_next = column + 1 < self.cols && self.ld - rest < self.rows;
        meets_column || meets_next
    }

    /// The first matrix that shares an element with matrix 0 of a batch, if there is one.
    ///
    /// Column `c` of matrix `b` starts at `b * stride + c * ld`. Two columns meet if their starts are less than `rows`
    /// apart, so matrix `b` meets matrix 0 if a multiple of `ld`, by less than `cols` columns, lies that close to
    /// `b * stride`.
    pub(crate) fn first_overlap(self, stride: usize, count: usize) -> Option<usize> {
        let span = self.span();
        if span == 0 {
            return None;
        }
        for matrix in 1..count {
            let offset = matrix.checked_mul(stride).filter(|&offset| offset < span)?;
            if self.meets(offset) {
                return Some(matrix);
            }
        }
        None
    }

    /// Indices of two offsets at which matrices share an element, the lower index first.
    ///
    /// An offset is a row and a column of one matrix of `ld` rows, so that the matrices are rectangles of one size in
    /// it. On a grid of that size two that begin in one cell meet; as long as none do, each has at most nine cells to
    /// look into.
    pub(crate) fn pair_that_meets(self, offsets: &[usize]) -> Option<(usize, usize)> {
        if self.span() == 0 {
            return None;
        }
        let (rows, cols, ld) = (self.rows as i128, self.cols as i128, self.ld as i128);
        let mut cells = HashMap::with_capacity(offsets.len());
        for (index, &offset) in offsets.iter().enumerate() {
            let (column, row) = (offset as i128 / ld, offset as i128 % ld);
            // What reaches beyond the last row goes on in the next column's first.
            let again = (row + rows > ld).then_some((row - ld, column + 1));
            let begins = [Some((row, column)), again];
            for (row, column) in begins.into_iter().flatten() {
                let (x, y) = (row.div_euclid(rows), column.div_euclid(cols));
                for cell in (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y))) {
                    if let Some(&(other, at_row, at_column)) = cells.get(&cell)
                        && other != index
                        && i128::abs(row - at_row) < rows
                        && i128::abs(column - at_column) < cols
                    {
                        return Some((other, index));
                    }
                }
            }
            for (row, column) in begins.into_iter().flatten() {
                let cell = (row.div_euclid(rows), column.div_euclid(cols));
                cells.insert(cell, (index, row, column));
            }
        }
        None
    }
}

/// That a matrix does not have as many rows and columns as it needs.
pub(crate) fn shape(call: &'static str, argument: &'static str, found: Layout, rows: usize, cols: usize) -> Error {
    let found = format!("{} x {}", found.rows, found.cols);
    Error::Shape {
        call,
        argument,
        found,
        expected: format!("{rows} x {cols}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::Layout;

    impl Layout {
        fn new(rows: usize, cols: usize, ld: usize) -> crate::Result<Self> {
            let layout = Self { rows, cols, ld };
            layout.check().map(|()| layout)
        }
    }

    fn elements(layout: Layout, start: usize) -> impl Iterator<Item = usize> {
        (0..layout.cols).flat_map(move |col| (0..layout.rows).map(move |row| start + col * layout.ld + row))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_span_ends_with_the_last_element(
            rows in 0_usize..6, cols in 0_usize..6, extra in 0_usize..4, stride in 0_usize..40, count in 0_usize..6,
        ) {
            let layout = Layout::new(rows, cols, rows.max(1) + extra).unwrap();
            let last = (0..count).flat_map(|matrix| elements(layout, matrix * stride)).max();
            prop_assert_eq!(layout.batch_span(stride, count), Some(last.map_or(0, |last| last + 1)));
        }

        #[test]
        fn an_overlap_is_found_exactly_when_two_matrices_share_an_element(
            rows in 0_usize..6, cols in 0_usize..6, extra in 0_usize..8, stride in 0_usize..50, count in 0_usize..7,
        ) {
            let layout = Layout::new(rows, cols, rows.max(1) + extra).unwrap();
            let mut seen = HashSet::new();
            let share = (0..count).any(|matrix| {
                let own: Vec<_> = elements(layout, matrix * stride).collect();
                let meets = own.iter().any(|element| seen.contains(element));
                seen.extend(own);
                meets
            });
            prop_assert_eq!(layout.first_overlap(stride, count).is_some(), share);
        }
    }

    proptest! {
        #[test]
        fn a_pair_that_meets_is_found_exactly_when_there_is_one(
            rows in 0_usize..5, cols in 0_usize..5, extra in 0_usize..8, offsets in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let layout = Layout::new(rows, cols, rows.max(1) + extra).unwrap();
            let share = |one: usize, other: usize| {
                let own: HashSet<_> = elements(layout, offsets[one]).collect();
                elements(layout, offsets[other]).any(|element| own.contains(&element))
            };
            match layout.pair_that_meets(&offsets) {
                Some((one, other)) => prop_assert!(one < other && share(one, other)),
                None => {
                    for one in 0..offsets.len() {
                        for other in 0..one {
                            prop_assert!(!share(one, other), "{} and {}", one, other);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(Layout::new(1 << 63, 1, 1 << 63).is_err());
        assert!(Layout::new(1, 1 << 63, 1).is_err());
        assert!(Layout::new(1, 1, 1 << 63).is_err());
        assert_eq!(Layout::new(1 << 40, 1 << 40, 1 << 40).unwrap().span(), usize::MAX);
        assert!(Layout::new(3, 1, 2).is_err());
        assert!(Layout::new(0, 0, 0).is_err());
        assert_eq!(Layout::new(2, 2, 2).unwrap().batch_span(usize::MAX, 3), None);
    }
}
