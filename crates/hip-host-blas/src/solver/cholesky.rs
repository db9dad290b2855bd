//! The arithmetic of potrf, potri and potrs on one matrix.
//!
//! potrf and potri work on a copy of the triangle, for two reasons: the other triangle belongs to the caller
//! and must stay as it is, whatever the factorisation uses as scratch; and an upper factor is the
//! conjugate transpose of a lower one, so one algorithm serves both. The copy is O(n^2) next to
//! O(n^3) of arithmetic.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::{Mat, Par};

use crate::blas::scalar::Scalar;
use crate::blas::triangular::{Side, Triangle};
use crate::blas::view::{Fill, Op, Source, Target};

/// The order of the first leading minor that is not positive definite, counted from 1 as LAPACK
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPositiveDefinite {
    pub(crate) minor: usize,
}

/// The first zero on the diagonal of a factor, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Singular {
    pub(crate) pivot: usize,
}

/// The Cholesky factor in place of the triangle `fill`: `A = L L^H`, or `A = U^H U`.
///
/// On failure the columns of the factor that belong to minors that are positive definite are stored in
/// full, and the failing pivot as it was found, as LAPACK's `potf2` and rocSOLVER's
/// (`library/src/lapack/roclapack_potf2.hpp`) leave them; the rest of the triangle stays as it was. A value
/// that is not a number makes its minor not positive definite. Imaginary parts on the diagonal are taken as
/// zero.
///
/// # Safety
/// `a` holds an `n` x `n` matrix whose triangle is initialised and writable, and nothing else touches it.
pub(crate) unsafe fn factor<T: Scalar>(fill: Fill, n: usize, a: Target<T>) -> Result<(), NotPositiveDefinite> {
    // SAFETY: the caller's promise.
    let mut lower = unsafe { load(fill, n, a) };
    make_diagonal_real(&mut lower);
    let mut memory = MemBuffer::new(llt::factor::cholesky_in_place_scratch::<T>(
        n,
        Par::Seq,
        Default::default(),
    ));
    let outcome = llt::factor::cholesky_in_place(
        lower.as_mut(),
        Default::default(),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    );
    if let Err(llt::factor::LltError::NonPositivePivot { index }) = outcome {
        // What the failed run left below and right of the good part depends on its blocks.
        // SAFETY: the caller's promise; nothing was stored yet.
        let mut partial = unsafe { load(fill, n, a) };
        make_diagonal_real(&mut partial);
        eliminate(&mut partial, &lower, index);
        // SAFETY: the caller's promise.
        unsafe { store(fill, n, &partial, a) };
        return Err(NotPositiveDefinite { minor: index + 1 });
    }
    // Rounding leaves traces of an imaginary part on it.
    make_diagonal_real(&mut lower);
    // SAFETY: the caller's promise.
    unsafe { store(fill, n, &lower, a) };
    Ok(())
}

/// Puts the first `good` columns of the factor into `matrix`, of which `lower` holds the rows of the good
/// minor, and what elimination leaves of the next element of the diagonal.
fn eliminate<T: Scalar>(matrix: &mut Mat<T>, lower: &Mat<T>, good: usize) {
    for col in 0..good {
        for row in col..good {
            matrix[(row, col)] = lower[(row, col)];
        }
        let pivot = T::from_part(matrix[(col, col)].re());
        matrix[(col, col)] = pivot;
        for row in good..matrix.nrows() {
            let mut value = matrix[(row, col)];
            for k in 0..col {
                value -= matrix[(row, k)] * lower[(col, k)].conjugate();
            }
            matrix[(row, col)] = value / pivot;
        }
    }
    let mut rest = matrix[(good, good)];
    for k in 0..good {
        rest -= matrix[(good, k)] * matrix[(good, k)].conjugate();
    }
    matrix[(good, good)] = T::from_part(rest.re());
}

/// The inverse of the factored matrix in place of its factor, the triangle `fill` only. A singular
/// factor is left as it was.
///
/// # Safety
/// As for [`factor`].
pub(crate) unsafe fn invert<T: Scalar>(fill: Fill, n: usize, a: Target<T>) -> Result<(), Singular> {
    for i in 0..n {
        // SAFETY: the caller's promise; the diagonal is part of the triangle.
        if unsafe { a.from(i, i).ptr.read() } == T::ZERO {
            return Err(Singular { pivot: i + 1 });
        }
    }
    // SAFETY: the caller's promise.
    let lower = unsafe { load(fill, n, a) };
    let mut inverse = Mat::<T>::zeros(n, n);
    let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<T>(n, Par::Seq));
    llt::inverse::inverse(inverse.as_mut(), lower.as_ref(), Par::Seq, MemStack::new(&mut memory));
    make_diagonal_real(&mut inverse);
    // SAFETY: the caller's promise.
    unsafe { store(fill, n, &inverse, a) };
    Ok(())
}

/// `B := A^-1 B` for an `n` x `cols` matrix `b` and the factor of `A` in the triangle `fill` of `a`.
///
/// # Safety
/// `a` has a readable triangle of order `n`, `b` is initialised and writable and nothing else touches it.
pub(crate) unsafe fn solve<T: Scalar>(fill: Fill, shape: (usize, usize), a: Source<T>, b: Target<T>) {
    // A = L L^H, or U^H U.
    let steps = match fill {
        Fill::Lower => [Op::None, Op::ConjTranspose],
        Fill::Upper => [Op::ConjTranspose, Op::None],
    };
    for op in steps {
        let triangle = Triangle {
            side: Side::Left,
            fill,
            op,
            unit: false,
        };
        // SAFETY: the caller's promise.
        unsafe { triangle.solve(T::ONE, a, b, shape) };
    }
}

fn make_diagonal_real<T: Scalar>(matrix: &mut Mat<T>) {
    for i in 0..matrix.nrows() {
        matrix[(i, i)] = T::from_part(matrix[(i, i)].re());
    }
}

/// The rows of column `col` that belong to the triangle.
fn rows(fill: Fill, n: usize, col: usize) -> std::ops::Range<usize> {
    match fill {
        Fill::Lower => col..n,
        Fill::Upper => 0..col + 1,
    }
}

/// The triangle as a lower one, conjugate-transposed if it is an upper one; zeros above.
///
/// # Safety
/// The triangle is readable and initialised.
unsafe fn load<T: Scalar>(fill: Fill, n: usize, a: Target<T>) -> Mat<T> {
    let mut lower = Mat::zeros(n, n);
    for col in 0..n {
        for row in rows(fill, n, col) {
            // SAFETY: an element of the triangle.
            let value = unsafe { a.from(row, col).ptr.read() };
            match fill {
                Fill::Lower => lower[(row, col)] = value,
                Fill::Upper => lower[(col, row)] = value.conjugate(),
            }
        }
    }
    lower
}

/// The inverse of `load` for the leading `n` x `n` triangle.
///
/// # Safety
/// The triangle is writable and nothing else touches it.
unsafe fn store<T: Scalar>(fill: Fill, n: usize, lower: &Mat<T>, a: Target<T>) {
    for col in 0..n {
        for row in rows(fill, n, col) {
            let value = match fill {
                Fill::Lower => lower[(row, col)],
                Fill::Upper => lower[(col, row)].conjugate(),
            };
            // SAFETY: an element of the triangle.
            unsafe { a.from(row, col).ptr.write(value) };
        }
    }
}
