//! The shape of a tile: what a work-group holds in its registers, and how it exchanges it.

use std::fmt::Write;

use crate::factor::radices;

/// What the transforms of a tile are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transforms {
    /// Rows, one behind the other.
    Rows,
    /// The columns of a matrix, which are written in blocks for the second step: `block` numbers
    /// of a column lie side by side, behind them the same ones of the next column, and so on.
    First {
        /// The columns of the matrix.
        width: usize,
        /// Divides the length.
        block: usize,
    },
    /// Blocks of as many transforms as the tile has columns, which are written as the columns of a
    /// matrix.
    Second {
        /// The columns of the matrix.
        width: usize,
    },
}

/// What is free in a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// About the number of complex numbers that a work-item holds.
    pub values: usize,
    pub columns: usize,
    /// Complex numbers are exchanged, not first real and then imaginary parts.
    pub whole: bool,
}

/// A tile of `columns` transforms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub len: usize,
    pub radices: Vec<usize>,
    /// The work-items of a transform.
    pub items: usize,
    pub columns: usize,
    /// Complex numbers are exchanged, not first real and then imaginary parts.
    pub whole: bool,
    pub transforms: Transforms,
}

/// The banks of local memory, a word of four bytes each, of all GPUs that are known to us.
const BANKS: usize = 32;

/// How a transform lies in local memory between two passes: `pad` words further after each `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    block: usize,
    pad: usize,
    /// The words between two numbers of one of the next pass's butterflies.
    next: usize,
    /// The words of a transform.
    words: usize,
}

impl Tile {
    pub fn new(len: usize, shape: Shape, transforms: Transforms) -> Option<Self> {
        let Shape { values, columns, whole } = shape;
        let radices = radices(len, values.next_power_of_two().clamp(2, 32))?;
        let items = radices
            .iter()
            .map(|radix| (len / radix).div_ceil((values / radix).max(1)))
            .max()
            .unwrap_or(1);
        Some(Self {
            len,
            radices,
            items,
            columns,
            whole,
            transforms,
        })
    }

    /// The work-items of a work-group.
    pub fn group(&self) -> usize {
        self.items * self.columns
    }

    /// Whether the last pass belongs to other work-items than the passes before, so those that read along a matrix's
    /// row write along one too.
    pub fn swapped(&self) -> bool {
        matches!(self.transforms, Transforms::First { .. }) && self.radices.len() > 1
    }

    /// The neighbouring work-items of the last pass that have numbers of one column, before those
    /// of the next column follow.
    pub fn mix(&self) -> usize {
        match self.transforms {
            // A short block is filled up to what memory takes at once by those of other columns.
            Transforms::First { block, .. } if block < 8 && self.items.is_multiple_of(block) => block,
            _ => self.items,
        }
    }

    /// The words of local memory of a transform, a word being what is exchanged at a time.
    pub fn pitch(&self) -> usize {
        let words = self.layouts().map(|layout| layout.words);
        let words = words.max().unwrap_or(1);
        if self.swapped() {
            // Neighbouring work-items then write to one number of each column.
            words.next_multiple_of(self.banks()) + (self.banks() / self.columns).max(1)
        } else {
            words
        }
    }

    /// The banks of local memory in words.
    fn banks(&self) -> usize {
        BANKS / if self.whole { 2 } else { 1 }
    }

    pub fn local_bytes(&self) -> usize {
        self.pitch() * self.columns * if self.whole { 8 } else { 4 }
    }

    /// The layouts after each pass but the last.
    fn layouts(&self) -> impl Iterator<Item = Layout> {
        let beside = match self.transforms {
            Transforms::Rows => 1,
            Transforms::First { .. } | Transforms::Second { .. } => self.columns,
        };
        // As many work-items side by side must meet different banks.
        let banks = (self.banks() / beside).max(1);
        let mut stride = 1;
        self.radices.windows(2).map(move |pair| {
            let span = stride * pair[0];
            let apart = self.len / pair[1];
            let block = span.max(banks);
            let fits = block.is_multiple_of(span) && apart.is_multiple_of(block);
            let (block, pad) = if stride < banks && fits {
                (block, stride)
            } else {
                (self.len, 0)
            };
            stride = span;
            Layout {
                block,
                pad,
                next: apart + pad * (apart / block),
                words: self.len + pad * (self.len / block),
            }
        })
    }

    /// The passes as calls of the template's macros.
    pub fn body(&self) -> String {
        let each = |radix: usize| (self.len / radix).div_ceil(self.items);
        let first = self.radices[0];
        let mut body = String::new();
        // Writing to a string does not fail.
        let _ = write!(body, "READ(a0, {first}, {}) ", each(first));
        let mut stride = 1;
        for ((index, pair), layout) in self.radices.windows(2).enumerate().zip(self.layouts()) {
            let (radix, next) = (pair[0], pair[1]);
            let when = if index == 0 { "FIRST" } else { "LATER" };
            let words = match self.transforms {
                Transforms::Rows => "ALONG, ALONG, item",
                _ if self.swapped() && index + 2 == self.radices.len() => "ALONG, LAST_ALONG, last_item",
                _ => "ACROSS, ACROSS, item",
            };
            let _ = write!(
                body,
                "PASS(a{index}, {radix}, {}, {stride}) \
                 EXCHANGE({when}, {words}, a{index}, {radix}, {}, {stride}, a{}, {next}, {}, {}, {}, {}) ",
                each(radix),
                each(radix),
                index + 1,
                each(next),
                layout.next,
                layout.block,
                layout.pad,
            );
            stride *= radix;
        }
        let index = self.radices.len() - 1;
        let last = self.radices[index];
        let _ = write!(
            body,
            "LAST(a{index}, {last}, {0}) WRITE(a{index}, {last}, {0})",
            each(last)
        );
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles() -> impl Iterator<Item = Tile> {
        let lens = [2, 16, 60, 84, 128, 200, 512, 1000, 1024, 1029, 2048, 4096, 8192];
        lens.into_iter().flat_map(|len| {
            [8, 16, 32].into_iter().flat_map(move |values| {
                let first = Transforms::First { width: 64, block: 4 };
                [Transforms::Rows, first, Transforms::Second { width: 64 }]
                    .into_iter()
                    .flat_map(move |transforms| {
                        [false, true].into_iter().map(move |whole| {
                            let shape = Shape {
                                values,
                                columns: 4,
                                whole,
                            };
                            Tile::new(len, shape, transforms).unwrap()
                        })
                    })
            })
        })
    }

    #[test]
    fn the_work_items_have_room_for_every_butterfly() {
        for tile in tiles() {
            for &radix in &tile.radices {
                let each = (tile.len / radix).div_ceil(tile.items);
                assert!(each * tile.items * radix >= tile.len);
                assert!(each * radix <= 32, "{tile:?}");
            }
        }
    }

    #[test]
    fn a_layout_has_a_word_for_each_number_and_the_steps_that_the_kernel_takes() {
        for tile in tiles() {
            let mut stride = 1;
            for (pair, layout) in tile.radices.windows(2).zip(tile.layouts()) {
                let padded = |k: usize| k + layout.pad * (k / layout.block);
                assert!((1..tile.len).all(|k| padded(k) > padded(k - 1)));
                assert!(padded(tile.len - 1) < layout.words && layout.words <= tile.pitch());
                for b in 0..tile.len / pair[0] {
                    let k = b % stride + pair[0] * (b - b % stride);
                    assert!(
                        (0..pair[0]).all(|j| padded(k + stride * j) == padded(k) + stride * j),
                        "{tile:?}"
                    );
                }
                let apart = tile.len / pair[1];
                for b in 0..apart {
                    assert!(
                        (0..pair[1]).all(|j| padded(b + apart * j) == padded(b) + layout.next * j),
                        "{tile:?}"
                    );
                }
                stride *= pair[0];
            }
        }
    }

    #[test]
    fn neighbours_of_a_power_of_two_write_to_different_banks() {
        for tile in tiles().filter(|tile| tile.len.is_power_of_two() && tile.len >= 512) {
            let rows = tile.transforms == Transforms::Rows;
            let beside = if rows { 1 } else { tile.columns };
            let banks = tile.banks();
            let mut stride = 1;
            for (index, (pair, layout)) in tile.radices.windows(2).zip(tile.layouts()).enumerate() {
                let along = rows || tile.swapped() && index + 2 == tile.radices.len();
                let mut used: Vec<usize> = (0..banks)
                    .map(|id| {
                        let (column, b) = (id % beside, id / beside);
                        let k = b % stride + pair[0] * (b - b % stride);
                        let place = k + layout.pad * (k / layout.block);
                        let word = match along {
                            true => column * tile.pitch() + place,
                            false => place * beside + column,
                        };
                        word % banks
                    })
                    .collect();
                used.sort_unstable();
                used.dedup();
                assert_eq!(used.len(), banks, "{tile:?} at {stride}");
                stride *= pair[0];
            }
        }
    }
}
