//! The arithmetic of herk and syrk: a product of a matrix with its own (conjugate) transpose, of
//! which one triangle is stored.

use faer::linalg::matmul::matmul_with_conj;
use faer::{Accum, Mat, MatMut, Par};

use super::product::{Operands, Product};
use super::scalar::Scalar;
use super::schedule;
use super::view::{Fill, Op, Source, Target};

/// The triangle is cut into squares of this side; a fixed number for the reason that
/// `product` has.
const TILE: usize = 256;

/// The squares on the diagonal, of which only a triangle is stored, have this side: the whole square is computed beside
/// it. `faer`'s own product into a triangle writes outside of it with AVX2 (0.24.4, complex doubles, 3 x 3).
const BLOCK: usize = 32;

/// `C := alpha op(A) op(A)^H + beta C` (`^T` if not `hermitian`), the triangle `fill` of an `n` x
/// `n` matrix; `op(A)` is `n` x `k`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankK<T> {
    pub(crate) fill: Fill,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Real if `hermitian`.
    pub(crate) alpha: T,
    /// Real if `hermitian`.
    pub(crate) beta: T,
    pub(crate) hermitian: bool,
}

impl<T: Scalar> RankK<T> {
    /// # Safety
    /// `a` has `n` x `k` readable elements (after its operation) if `alpha` and `k` are not 0, `c`
    /// has an `n` x `n` matrix whose triangle is writable and, if `beta` is not 0, initialised, and
    /// which overlaps nothing else in use.
    pub(crate) unsafe fn run(&self, a: Source<T>, c: Target<T>) {
        let Self { n, fill, .. } = *self;
        let tiles = n.div_ceil(TILE);
        let pairs = tiles * (tiles + 1) / 2;
        let flops = if T::COMPLEX { 4 } else { 1 } * n * n * self.k.max(1);
        schedule::for_each(pairs, flops, |index| {
            let (long, short) = pair(index);
            let (row, col) = match fill {
                Fill::Lower => (long * TILE, short * TILE),
                Fill::Upper => (short * TILE, long * TILE),
            };
            let side = |at: usize| TILE.min(n - at);
            let part = Operands {
                a: a.from(row, 0),
                b: self.adjoint(a).from(0, col),
                c: c.from(row, col),
            };
            let product = Product {
                m: side(row),
                n: side(col),
                k: self.k,
                alpha: self.alpha,
                beta: self.beta,
            };
            // SAFETY: a square of the caller's triangle; squares of different pairs are disjoint.
            unsafe {
                if row == col {
                    self.on_diagonal(&product, part);
                } else {
                    product.run(1, |_| part);
                }
            }
        });
    }

    fn adjoint(&self, a: Source<T>) -> Source<T> {
        let op = match a.op {
            Op::None if self.hermitian => Op::ConjTranspose,
            Op::None => Op::Transpose,
            Op::Transpose | Op::ConjTranspose => Op::None,
        };
        Source { op, ..a }
    }

    /// # Safety
    /// As for `run`; `part.c` is a square on the diagonal, of which only the triangle is touched.
    unsafe fn on_diagonal(&self, product: &Product<T>, part: Operands<T>) {
        let n = product.n;
        let side = BLOCK.min(n);
        let mut scratch = Mat::<T>::zeros(side, side);
        for at in (0..n).step_by(BLOCK) {
            let side = BLOCK.min(n - at);
            // What the triangle has of these columns beside the block.
            let rows = match self.fill {
                Fill::Lower => at + side..n,
                Fill::Upper => 0..at,
            };
            let from = |row: usize| Operands {
                a: part.a.from(row, 0),
                b: part.b.from(0, at),
                c: part.c.from(row, at),
            };
            let (beside, block) = (from(rows.start), from(at));
            let shape = |m| Product { m, n: side, ..*product };
            // SAFETY: the caller's promise; both lie in the triangle's square.
            unsafe {
                if !rows.is_empty() {
                    shape(rows.len()).run(1, |_| beside);
                }
                let scratch = scratch.as_mut().submatrix_mut(0, 0, side, side);
                self.block(&shape(side), block, scratch);
            }
        }
    }

    /// # Safety
    /// As for [`on_diagonal`](Self::on_diagonal).
    unsafe fn block(&self, product: &Product<T>, part: Operands<T>, mut scratch: MatMut<'_, T>) {
        let Product { n, k, alpha, beta, .. } = *product;
        let fill = self.fill;
        let rows = |col: usize| match fill {
            Fill::Lower => col..n,
            Fill::Upper => 0..col + 1,
        };
        let Operands { a, b, c } = part;
        // SAFETY: the caller's promise.
        unsafe {
            if beta != T::ZERO || !product.reads_operands() {
                c.scale(beta, n, rows);
            }
            if product.reads_operands() {
                matmul_with_conj(
                    scratch.as_mut(),
                    Accum::Replace,
                    a.mat(n, k),
                    a.op.conj(),
                    b.mat(k, n),
                    b.op.conj(),
                    alpha,
                    Par::Seq,
                );
                for col in 0..n {
                    for row in rows(col) {
                        let (place, value) = (c.from(row, col).ptr, scratch[(row, col)]);
                        place.write(if beta == T::ZERO { value } else { place.read() + value });
                    }
                }
            }
            if self.hermitian {
                for i in 0..n {
                    let diagonal = c.from(i, i).ptr;
                    diagonal.write(T::from_part(diagonal.read().re()));
                }
            }
        }
    }
}

/// The `index`th pair `(long, short)` with `short <= long`, counted row by row.
fn pair(index: usize) -> (usize, usize) {
    let mut long = 0;
    let mut before = 0;
    while before + long < index {
        before += long + 1;
        long += 1;
    }
    (long, index - before)
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn pairs_name_every_square_of_the_triangle_once() {
        let expected: Vec<_> = (0..6).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        assert_eq!((0..expected.len()).map(pair).collect::<Vec<_>>(), expected);
    }
}
