//! A matrix as BLAS describes it: a pointer, a leading dimension and an operation to apply on
//! reading.

use faer::{Conj, MatMut, MatRef};

use super::scalar::Scalar;

/// The operation applied to an operand on reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    None,
    Transpose,
    ConjTranspose,
}

impl Op {
    /// The stored shape of an operand whose shape after the operation is `rows` x `cols`.
    pub(crate) fn stored(self, rows: usize, cols: usize) -> (usize, usize) {
        match self {
            Op::None => (rows, cols),
            Op::Transpose | Op::ConjTranspose => (cols, rows),
        }
    }

    pub(crate) fn conj(self) -> Conj {
        match self {
            Op::ConjTranspose => Conj::Yes,
            Op::None | Op::Transpose => Conj::No,
        }
    }
}

/// `ptr`, or some other address for null: `faer` takes no null, not even for a matrix without elements, which BLAS
/// and LAPACK let be anywhere.
pub(super) fn somewhere<T>(ptr: *mut T) -> *mut T {
    if ptr.is_null() { std::ptr::dangling_mut() } else { ptr }
}

/// Which triangle of a square matrix holds the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Upper,
    Lower,
}

/// A column-major matrix that is only read; crossing to another thread is the reason for its
/// existence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<T> {
    pub(crate) ptr: *const T,
    pub(crate) ld: usize,
    pub(crate) op: Op,
}

// SAFETY: a `Source` is an address; every use of it is unsafe and carries the duty that the memory
// is readable there.
unsafe impl<T: Send> Send for Source<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Source<T> {}

/// The element of a column-major matrix. An operand without elements may have any leading dimension, so that the place
/// of what it does not have may lie beyond all addresses.
fn place(row: usize, col: usize, ld: usize) -> usize {
    col.wrapping_mul(ld).wrapping_add(row)
}

impl<T: Scalar> Source<T> {
    /// The part of the operand (after the operation) that begins at `row`, `col`.
    pub(crate) fn from(self, row: usize, col: usize) -> Self {
        let offset = match self.op {
            Op::None => place(row, col, self.ld),
            Op::Transpose | Op::ConjTranspose => place(col, row, self.ld),
        };
        Self {
            ptr: self.ptr.wrapping_add(offset),
            ..self
        }
    }

    /// The operand as `faer` sees it, transposed by its strides; the conjugation is passed on
    /// separately.
    ///
    /// # Safety
    /// `rows` x `cols` elements after the operation are readable and nothing writes them during
    /// `'a`.
    pub(crate) unsafe fn mat<'a>(self, rows: usize, cols: usize) -> MatRef<'a, T> {
        let (row_stride, col_stride) = match self.op {
            Op::None => (1, self.ld as isize),
            Op::Transpose | Op::ConjTranspose => (self.ld as isize, 1),
        };
        let ptr = somewhere(self.ptr.cast_mut()).cast_const();
        // SAFETY: the caller's promise; the strides address exactly the stored matrix.
        unsafe { MatRef::from_raw_parts(ptr, rows, cols, row_stride, col_stride) }
    }

    /// # Safety
    /// The element at `row`, `col` (after the operation) is readable.
    pub(crate) unsafe fn read(self, row: usize, col: usize) -> T {
        // SAFETY: the caller's promise.
        let value = unsafe { *self.from(row, col).ptr };
        match self.op {
            Op::ConjTranspose => value.conjugate(),
            Op::None | Op::Transpose => value,
        }
    }
}

/// A column-major matrix that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<T> {
    pub(crate) ptr: *mut T,
    pub(crate) ld: usize,
}

// SAFETY: as for `Source`; the code that splits the work ensures that two threads write different
// elements.
unsafe impl<T: Send> Send for Target<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Target<T> {}

impl<T: Scalar> Target<T> {
    pub(crate) fn from(self, row: usize, col: usize) -> Self {
        Self {
            ptr: self.ptr.wrapping_add(place(row, col, self.ld)),
            ..self
        }
    }

    /// # Safety
    /// `rows` x `cols` elements are writable and nothing else touches them during `'a`.
    pub(crate) unsafe fn mat<'a>(self, rows: usize, cols: usize) -> MatMut<'a, T> {
        // SAFETY: the caller's promise.
        unsafe { MatMut::from_raw_parts_mut(somewhere(self.ptr), rows, cols, 1, self.ld as isize) }
    }

    /// `C := beta C` for the rows `from(col)..to(col)` of each column. `beta == 0` writes zeros
    /// without reading: what was there may be NaN.
    ///
    /// # Safety
    /// Those elements are writable, initialised unless `beta == 0`, and nothing else touches them.
    pub(crate) unsafe fn scale(self, beta: T, cols: usize, rows: impl Fn(usize) -> std::ops::Range<usize>) {
        if beta == T::ONE {
            return;
        }
        for col in 0..cols {
            let rows = rows(col);
            let start = self.from(rows.start, col).ptr;
            for i in 0..rows.len() {
                // SAFETY: the caller's promise covers the rows of each column.
                unsafe {
                    let element = start.add(i);
                    element.write(if beta == T::ZERO {
                        T::ZERO
                    } else {
                        beta * element.read()
                    });
                }
            }
        }
    }
}

/// The elements between the first and the last one of a `rows` x `cols` matrix, both included; 0
/// for an empty one. `None` if that does not fit an address space.
pub(crate) fn span(rows: usize, cols: usize, ld: usize) -> Option<usize> {
    if rows == 0 || cols == 0 {
        return Some(0);
    }
    ld.checked_mul(cols - 1)?.checked_add(rows)
}
