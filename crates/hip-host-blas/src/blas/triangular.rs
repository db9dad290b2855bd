//! The arithmetic of trsm and trmm: a triangle against a matrix from the left or the right.
//!
//! A product from the right is one from the left of the transposes, `B A = (A^T B^T)^T`, and
//! transposing is free for matrices that are described by strides: one algorithm serves all
//! combinations of side and operation.

use faer::linalg::matmul::triangular::{BlockStructure, matmul_with_conj};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par};

use super::scalar::Scalar;
use super::schedule;
use super::view::{Fill, Op, Source, Target, somewhere};

/// On which side of the other matrix the triangle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The columns that one thread works on at a time (rows, if the triangle stands on the right). A
/// fixed number, so that the bits of a result do not depend on how many cores there are.
const PIECE: usize = 64;

/// A triangular operand: what is stored, and how it is applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangle {
    pub(crate) side: Side,
    pub(crate) fill: Fill,
    pub(crate) op: Op,
    /// The diagonal is not read and counts as ones.
    pub(crate) unit: bool,
}

/// A matrix by strides, seen so that the triangle stands on the left.
#[derive(Clone, Copy)]
struct Seen<T> {
    ptr: *mut T,
    ld: usize,
    rows: usize,
    transposed: bool,
}

impl<T: Scalar> Seen<T> {
    /// Where the columns from `from` begin, the distance of rows and that of columns.
    fn columns(self, from: usize) -> (*mut T, isize, isize) {
        let ld = self.ld as isize;
        let (rows, across) = if self.transposed { (ld, 1) } else { (1, ld) };
        let first = self.ptr.wrapping_offset(from as isize * across);
        (first, rows, across)
    }

    /// The columns `from..from + cols`.
    ///
    /// # Safety
    /// They are readable and nothing writes them during `'a`.
    unsafe fn read<'a>(self, from: usize, cols: usize) -> MatRef<'a, T> {
        let (first, rows, across) = self.columns(from);
        // SAFETY: the caller's promise; the strides address the stored matrix.
        unsafe { MatRef::from_raw_parts(somewhere(first).cast_const(), self.rows, cols, rows, across) }
    }

    /// The columns `from..from + cols`.
    ///
    /// # Safety
    /// They are writable and nothing else touches them during `'a`.
    unsafe fn write<'a>(self, from: usize, cols: usize) -> MatMut<'a, T> {
        let (first, rows, across) = self.columns(from);
        // SAFETY: as for `read`.
        unsafe { MatMut::from_raw_parts_mut(somewhere(first), self.rows, cols, rows, across) }
    }
}

// SAFETY: an address; the methods say what may be done with it.
unsafe impl<T: Send> Send for Seen<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Seen<T> {}

impl Triangle {
    /// The order of the triangle and the number of columns it is applied to, for an `m` x `n`
    /// matrix on its other side.
    pub(crate) fn order(&self, (m, n): (usize, usize)) -> (usize, usize) {
        match self.side {
            Side::Left => (m, n),
            Side::Right => (n, m),
        }
    }

    fn see<T: Scalar>(&self, b: Target<T>, shape: (usize, usize)) -> Seen<T> {
        Seen {
            ptr: b.ptr,
            ld: b.ld,
            rows: self.order(shape).0,
            transposed: self.side == Side::Right,
        }
    }

    /// The triangle as it is applied from the left: its elements, whether they are the lower ones,
    /// and whether they are conjugated.
    ///
    /// # Safety
    /// The triangle is readable and nothing writes it during `'a`.
    unsafe fn applied<'a, T: Scalar>(&self, a: Source<T>, order: usize) -> (MatRef<'a, T>, bool, Conj) {
        // SAFETY: the caller's promise. `faer` reads the named triangle only.
        let stored = unsafe { Source { op: Op::None, ..a }.mat(order, order) };
        let transposed = (self.op != Op::None) != (self.side == Side::Right);
        let lower = (self.fill == Fill::Lower) != transposed;
        let seen = if transposed { stored.transpose() } else { stored };
        (seen, lower, self.op.conj())
    }

    /// `B := alpha op(A)^-1 B`, or `alpha B op(A)^-1`. A zero on the diagonal yields infinities, as
    /// in BLAS. `A` is not read if `alpha` is 0, nor is `B`.
    ///
    /// # Safety
    /// `a` has a readable triangle of the order, `b` has `shape` initialised elements, and nothing
    /// else touches them.
    pub(crate) unsafe fn solve<T: Scalar>(&self, alpha: T, a: Source<T>, b: Target<T>, shape: (usize, usize)) {
        // SAFETY: the caller's promise.
        unsafe { b.scale(alpha, shape.1, |_| 0..shape.0) };
        if alpha == T::ZERO {
            return;
        }
        let (order, cols) = self.order(shape);
        // SAFETY: the caller's promise.
        let (triangle, lower, conj) = unsafe { self.applied(a, order) };
        let seen = self.see(b, shape);
        in_pieces(order, cols, T::COMPLEX, |from, cols| {
            // SAFETY: the caller's promise; pieces are disjoint.
            let piece = unsafe { seen.write(from, cols) };
            let solve = match (lower, self.unit) {
                (true, false) => solve_lower_triangular_in_place_with_conj,
                (true, true) => solve_unit_lower_triangular_in_place_with_conj,
                (false, false) => solve_upper_triangular_in_place_with_conj,
                (false, true) => solve_unit_upper_triangular_in_place_with_conj,
            };
            solve(triangle, conj, piece, Par::Seq);
        });
    }

    /// `C := alpha op(A) B`, or `alpha B op(A)`; `b` may be `c` itself. Neither `A` nor `B` is read
    /// if `alpha` is 0.
    ///
    /// # Safety
    /// As for [`solve`](Self::solve); `c` is writable and overlaps neither `a` nor, unless it is
    /// the same matrix, `b`.
    pub(crate) unsafe fn multiply<T: Scalar>(
        &self,
        alpha: T,
        a: Source<T>,
        b: Source<T>,
        c: Target<T>,
        shape: (usize, usize),
    ) {
        if alpha == T::ZERO {
            // SAFETY: the caller's promise.
            return unsafe { c.scale(T::ZERO, shape.1, |_| 0..shape.0) };
        }
        let (order, cols) = self.order(shape);
        // SAFETY: the caller's promise.
        let (triangle, lower, conj) = unsafe { self.applied(a, order) };
        let structure = match (lower, self.unit) {
            (true, false) => BlockStructure::TriangularLower,
            (true, true) => BlockStructure::UnitTriangularLower,
            (false, false) => BlockStructure::TriangularUpper,
            (false, true) => BlockStructure::UnitTriangularUpper,
        };
        let in_place = b.ptr == c.ptr.cast_const();
        let result = self.see(c, shape);
        let operand = self.see(
            Target {
                ptr: b.ptr.cast_mut(),
                ld: b.ld,
            },
            shape,
        );
        in_pieces(order, cols, T::COMPLEX, |from, cols| {
            // SAFETY: the caller's promise; pieces are disjoint.
            let original = unsafe { operand.read(from, cols) };
            let copy;
            let operand = if in_place {
                copy = Mat::from_fn(order, cols, |row, col| original[(row, col)]);
                copy.as_ref()
            } else {
                original
            };
            matmul_with_conj(
                // SAFETY: as above; what was read from the same place is a copy now.
                unsafe { result.write(from, cols) },
                BlockStructure::Rectangular,
                Accum::Replace,
                triangle,
                structure,
                conj,
                operand,
                BlockStructure::Rectangular,
                Conj::No,
                alpha,
                Par::Seq,
            );
        });
    }
}

/// Calls `work` with the first column and the number of columns of each piece.
fn in_pieces(order: usize, cols: usize, complex: bool, work: impl Fn(usize, usize) + Sync) {
    let per_term = if complex { 4 } else { 1 };
    let flops = order.saturating_mul(order).saturating_mul(cols) * per_term;
    schedule::for_each(cols.div_ceil(PIECE), flops, |piece| {
        let from = piece * PIECE;
        work(from, PIECE.min(cols - from));
    });
}
