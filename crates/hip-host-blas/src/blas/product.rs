//! The arithmetic of gemm: one product, or a batch of products of the same shape.

use faer::linalg::matmul::matmul_with_conj;
use faer::{Accum, Par};

use super::scalar::Scalar;
use super::view::{Op, Source, Target};
use super::{schedule, thin};

/// The largest sides of the pieces that a product is cut into. Fixed numbers, so that the bits of a
/// result do not depend on how many cores there are. On one core with AVX-512 (benches/cgemm.rs)
/// low and wide pieces ran 3 % faster than squares of as many elements, 512 x 256 ran 20 % slower.
const TILE_ROWS: usize = 128;
const TILE_COLS: usize = 512;

/// `C := alpha op(A) op(B) + beta C` where `op(A)` is `m` x `k`, `op(B)` is `k` x `n`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<T> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: T,
    pub(crate) beta: T,
}

/// The operands of one product of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<T> {
    pub(crate) a: Source<T>,
    pub(crate) b: Source<T>,
    pub(crate) c: Target<T>,
}

impl<T: Scalar> Product<T> {
    /// False where BLAS says that `A` and `B` are not read.
    pub(crate) fn reads_operands(&self) -> bool {
        self.k != 0 && self.alpha != T::ZERO
    }

    fn flops(&self) -> usize {
        let per_term = if T::COMPLEX { 8 } else { 2 };
        per_term * self.m * self.n * self.k.max(1)
    }

    /// Computes `count` products; `operands(i)` names the matrices of the `i`th.
    ///
    /// # Safety
    /// For each `i < count` the matrices of `operands(i)` have at least the shapes above, those
    /// that are read are initialised, and no `C` overlaps another matrix of the batch.
    pub(crate) unsafe fn run(&self, count: usize, operands: impl Fn(usize) -> Operands<T> + Sync) {
        // A tall thin product has no packing to repeat, and a batch of them is parallel enough.
        let height = if thin::suits(self.m, self.n, self.k) {
            1 << 14
        } else {
            TILE_ROWS
        };
        let (rows, tile_rows) = cut(self.m, height);
        let (cols, tile_cols) = cut(self.n, TILE_COLS);
        let tiles = rows * cols;
        schedule::for_each(count * tiles, count * self.flops(), |index| {
            let (i, tile) = (index / tiles, index % tiles);
            let (row, col) = (tile % rows * tile_rows, tile / rows * tile_cols);
            let part = Self {
                m: tile_rows.min(self.m - row),
                n: tile_cols.min(self.n - col),
                ..*self
            };
            let all = operands(i);
            // SAFETY: a tile of the caller's matrices; tiles of one `C` are disjoint, and so are
            // the `C`s.
            unsafe {
                part.run_one(Operands {
                    a: all.a.from(row, 0),
                    b: all.b.from(0, col),
                    c: all.c.from(row, col),
                });
            }
        });
    }

    /// # Safety
    /// As for `run`, for one product.
    unsafe fn run_one(&self, Operands { a, b, c }: Operands<T>) {
        let Self { m, n, k, .. } = *self;
        if !self.reads_operands() {
            // SAFETY: the caller's promise for `C`.
            return unsafe { c.scale(self.beta, n, |_| 0..m) };
        }
        if a.op == Op::None && thin::suits(m, n, k) {
            // SAFETY: the caller's promise, and `suits` was asked.
            return unsafe {
                let b = thin::Packed::new(b, n, k, self.alpha);
                thin::product(a, &b, self.beta, c, m);
            };
        }
        let accumulate = if self.beta == T::ZERO {
            Accum::Replace
        } else {
            Accum::Add
        };
        // SAFETY: the caller's promise: shapes, initialised operands, and a `C` that nothing else
        // touches.
        unsafe {
            if accumulate == Accum::Add {
                c.scale(self.beta, n, |_| 0..m);
            }
            matmul_with_conj(
                c.mat(m, n),
                accumulate,
                a.mat(m, k),
                a.op.conj(),
                b.mat(k, n),
                b.op.conj(),
                self.alpha,
                Par::Seq,
            );
        }
    }
}

/// Cuts `size` into pieces of nearly equal length, at most `most` (a multiple of 16): how many, and
/// how long. Multiples of 16 keep the vectors of all pieces but the last one full.
fn cut(size: usize, most: usize) -> (usize, usize) {
    let length = size.div_ceil(size.div_ceil(most).max(1)).next_multiple_of(16);
    (size.div_ceil(length).max(1), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_size_and_none_is_empty_or_too_long() {
        for most in [TILE_ROWS, TILE_COLS, 1 << 14] {
            for size in 1..3000 {
                let (count, length) = cut(size, most);
                assert!(length <= most && count * length >= size && (count - 1) * length < size);
            }
        }
    }
}
