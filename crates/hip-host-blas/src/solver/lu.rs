//! The arithmetic of getrf, getrs and getri on one matrix.
//!
//! The factorisation is our own, since LAPACK's contract is stricter than a solver's: a zero pivot
//! is reported and passed over, and every element of the factors is still defined.

use faer::Mat;

use crate::blas::product::{Operands, Product};
use crate::blas::scalar::{Real, Scalar};
use crate::blas::triangular::{Side, Triangle};
use crate::blas::view::{Fill, Op, Source, Target};

/// The first zero on the diagonal of `U`, counted from 1 as LAPACK does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Singular {
    pub(super) pivot: usize,
}

/// Columns that are eliminated one by one before the rest of the matrix is updated by products.
const PANEL: usize = 32;

const LOWER: Triangle = Triangle {
    side: Side::Left,
    fill: Fill::Lower,
    op: Op::None,
    unit: true,
};
const UPPER: Triangle = Triangle {
    side: Side::Left,
    fill: Fill::Upper,
    op: Op::None,
    unit: false,
};

fn source<T>(a: Target<T>) -> Source<T> {
    Source {
        ptr: a.ptr.cast_const(),
        ld: a.ld,
        op: Op::None,
    }
}

/// Exchanges two rows of an `_` x `cols` matrix.
///
/// # Safety
/// The rows are readable and writable and nothing else touches them.
unsafe fn swap_rows<T: Scalar>(a: Target<T>, cols: usize, one: usize, other: usize) {
    if one != other {
        for col in 0..cols {
            // SAFETY: the caller's promise; different elements.
            unsafe { a.from(one, col).ptr.swap(a.from(other, col).ptr) };
        }
    }
}

/// `A = P L U` in place of the `m` x `n` matrix `a`, `L` with ones on its diagonal. With `pivot` the
/// rows that were exchanged are returned, one for each column, counted from 0; without it there is
/// no `P`.
///
/// # Safety
/// `a` has `m` x `n` initialised and writable elements that nothing else touches.
pub(super) unsafe fn factor<T: Scalar>(
    (m, n): (usize, usize),
    a: Target<T>,
    pivot: bool,
) -> (Vec<usize>, Result<(), Singular>) {
    let steps = m.min(n);
    let mut pivots = Vec::with_capacity(steps);
    let mut first_zero = None;
    for from in (0..steps).step_by(PANEL) {
        let cols = PANEL.min(steps - from);
        let end = from + cols;
        // SAFETY: the caller's promise; all parts lie within the matrix and those that are used
        // together are disjoint.
        unsafe {
            let panel = a.from(from, from);
            for col in 0..cols {
                let (row, zero) = eliminate((m - from, cols), panel, col, pivot);
                pivots.push(from + row);
                if zero {
                    first_zero.get_or_insert(from + col);
                }
            }
            // The panel exchanged its own columns; the others follow.
            for (row, &other) in pivots.iter().enumerate().skip(from) {
                swap_rows(a, from, row, other);
                swap_rows(a.from(0, end), n - end, row, other);
            }
            if end == n {
                continue;
            }
            let right = a.from(from, end);
            LOWER.solve(T::ONE, source(panel), right, (cols, n - end));
            if end == m {
                continue;
            }
            let update = Product {
                m: m - end,
                n: n - end,
                k: cols,
                alpha: -T::ONE,
                beta: T::ONE,
            };
            update.run(1, |_| Operands {
                a: source(a.from(end, from)),
                b: source(right),
                c: a.from(end, end),
            });
        }
    }
    let outcome = match first_zero {
        None => Ok(()),
        Some(index) => Err(Singular { pivot: index + 1 }),
    };
    (pivots, outcome)
}

/// One step of elimination within a `rows` x `cols` panel: the row that was exchanged with row
/// `col`, and whether the pivot is zero. Such a column is not divided by its pivot.
///
/// # Safety
/// As for [`factor`].
unsafe fn eliminate<T: Scalar>(
    (rows, cols): (usize, usize),
    panel: Target<T>,
    col: usize,
    pivot: bool,
) -> (usize, bool) {
    // SAFETY: the caller's promise, for all of the panel.
    let read = |row, col| unsafe { panel.from(row, col).ptr.read() };
    let size = |row| {
        let value = read(row, col);
        value.re().widen().abs() + value.im().widen().abs()
    };
    let mut best = col;
    if pivot {
        let mut most = size(col);
        for row in col + 1..rows {
            let size = size(row);
            if size > most {
                (best, most) = (row, size);
            }
        }
    }
    // SAFETY: as above.
    unsafe { swap_rows(panel, cols, col, best) };
    let divisor = read(col, col);
    let zero = divisor == T::ZERO;
    if !zero {
        for row in col + 1..rows {
            // SAFETY: as above.
            unsafe { panel.from(row, col).ptr.write(divide(read(row, col), divisor)) };
        }
    }
    for other in col + 1..cols {
        let factor = read(col, other);
        for row in col + 1..rows {
            let value = read(row, other) - read(row, col) * factor;
            // SAFETY: as above.
            unsafe { panel.from(row, other).ptr.write(value) };
        }
    }
    (best, zero)
}

/// In double precision: no complex quotient overflows on the way that does not at the end, if it is
/// of single precision.
fn divide<T: Scalar>(value: T, divisor: T) -> T {
    if T::COMPLEX {
        let wide = |x: T| num_complex::Complex::new(x.re().widen(), x.im().widen());
        let quotient = wide(value) / wide(divisor);
        T::from_parts(T::Part::narrow(quotient.re), T::Part::narrow(quotient.im))
    } else {
        T::from_part(T::Part::narrow(value.re().widen() / divisor.re().widen()))
    }
}

/// `B := op(A)^-1 B` for an `n` x `cols` matrix `b` and the factors of `A`. `pivots` as [`factor`]
/// returned them; empty if there are none.
///
/// # Safety
/// `a` has `n` x `n` readable elements, `b` is initialised and writable and nothing else touches
/// it; the pivots are less than `n`.
pub(super) unsafe fn solve<T: Scalar>(op: Op, (n, cols): (usize, usize), a: Source<T>, pivots: &[usize], b: Target<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        let solve = |triangle: Triangle| {
            Triangle { op, ..triangle }.solve(T::ONE, a, b, (n, cols));
        };
        if op == Op::None {
            for (row, &other) in pivots.iter().enumerate() {
                swap_rows(b, cols, row, other);
            }
            solve(LOWER);
            solve(UPPER);
        } else {
            solve(UPPER);
            solve(LOWER);
            for (row, &other) in pivots.iter().enumerate().rev() {
                swap_rows(b, cols, row, other);
            }
        }
    }
}

/// The inverse of the factored `n` x `n` matrix `a`, stored in `to`, which may be `a` itself. A
/// singular one leaves `to` as it was.
///
/// # Safety
/// As for [`solve`]; `to` is writable and nothing else touches it.
pub(super) unsafe fn invert<T: Scalar>(
    n: usize,
    a: Source<T>,
    pivots: &[usize],
    to: Target<T>,
) -> Result<(), Singular> {
    for i in 0..n {
        // SAFETY: the caller's promise.
        if unsafe { a.read(i, i) } == T::ZERO {
            return Err(Singular { pivot: i + 1 });
        }
    }
    let mut inverse = Mat::<T>::identity(n, n);
    let result = Target {
        ptr: inverse.as_ptr_mut(),
        ld: inverse.col_stride().unsigned_abs(),
    };
    // SAFETY: the caller's promise, and a matrix made here.
    unsafe {
        solve(Op::None, (n, n), a, pivots, result);
        for col in 0..n {
            let (from, to) = (result.from(0, col).ptr, to.from(0, col).ptr);
            std::ptr::copy_nonoverlapping(from.cast_const(), to, n);
        }
    }
    Ok(())
}
