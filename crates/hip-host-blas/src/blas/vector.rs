//! A vector as BLAS describes it: a pointer, a length and an increment.

use std::ops::Range;

use hip_host::library;
use rocblas_sys::rocblas_status;

use super::arguments::{check_aligned, check_range};
use super::status::Outcome;

/// `n` elements, `inc` apart. With a negative increment the first element is the one with the
/// highest address, as in BLAS: `ptr` is the lowest address in both cases.
#[derive(Debug)]
pub(crate) struct Vector<T> {
    ptr: *mut T,
    n: usize,
    inc: i64,
}

// Not derived: a copy of the description needs no copy of an element.
impl<T> Clone for Vector<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Vector<T> {}

// SAFETY: a `Vector` is an address; every use of it is unsafe and carries the duty that the memory
// may be touched there.
unsafe impl<T: Send> Send for Vector<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Vector<T> {}

impl<T> Vector<T> {
    pub(crate) fn new(ptr: *const T, n: usize, inc: i64) -> Self {
        let ptr = ptr.cast_mut();
        Self { ptr, n, inc }
    }

    /// The address of element `i`. Meaningful only after `check` or `check_result` succeeded.
    pub(crate) fn at(&self, i: usize) -> *mut T {
        let steps = if self.inc < 0 {
            i as isize - (self.n as isize - 1)
        } else {
            i as isize
        };
        self.ptr.wrapping_offset(steps * self.inc as isize)
    }

    /// The addresses from the first byte touched to the last; `None` if that is not within an
    /// address space.
    fn extent(&self) -> Option<Range<usize>> {
        let start = self.ptr.addr();
        if self.n == 0 {
            return Some(start..start);
        }
        let steps = usize::try_from(self.inc.unsigned_abs()).ok()?;
        let span = steps.checked_mul(self.n - 1)?.checked_add(1)?;
        let bytes = span.checked_mul(size_of::<T>())?;
        isize::try_from(bytes).ok()?;
        Some(start..start.checked_add(bytes)?)
    }

    /// Refuses null and memory that the device can't reach.
    pub(crate) fn check(&self, call: &str, argument: &str) -> Outcome {
        let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
        if self.n == 0 {
            return Ok(());
        }
        if self.ptr.is_null() {
            return Err(invalid_pointer);
        }
        let extent = self.extent().ok_or(invalid_pointer)?;
        check_aligned(call, argument, self.ptr.cast_const())?;
        check_range(call, argument, self.ptr.cast_const().cast(), extent.len())
    }

    /// As `check`, for a vector that is written: several results in one place are a race on the
    /// device.
    pub(crate) fn check_result(&self, call: &str, argument: &str) -> Outcome {
        if self.inc == 0 && self.n > 1 {
            library::refused(
                call,
                format_args!("{argument}: {} results at an increment of 0", self.n),
            );
            return Err(rocblas_status::rocblas_status_invalid_size);
        }
        self.check(call, argument)
    }

    /// True if both name the same elements in the same order.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.ptr == other.ptr && self.n == other.n && (self.inc == other.inc || self.n == 1)
    }

    /// The elements as those of a matrix of one row.
    pub(crate) fn elements(&self) -> Elements {
        Elements {
            start: self.ptr.addr(),
            size: size_of::<T>(),
            rows: 1,
            cols: if self.inc == 0 { self.n.min(1) } else { self.n },
            ld: self.inc.unsigned_abs().max(1) as usize,
        }
    }

    /// Refuses a vector that shares an element with `other`: undefined on the real library.
    pub(crate) fn ensure_apart(&self, call: &str, argument: &str, other: Elements) -> Outcome {
        let (Some(mine), theirs) = (self.extent(), other.extent()) else {
            return Err(rocblas_status::rocblas_status_invalid_pointer);
        };
        let apart = mine.end <= theirs.start || theirs.end <= mine.start;
        if apart || !(0..self.n).any(|i| other.hold(self.at(i).addr())) {
            return Ok(());
        }
        library::refused(call, format_args!("{argument} shares memory with the result"));
        Err(rocblas_status::rocblas_status_invalid_pointer)
    }
}

/// Where the elements of a checked matrix or vector lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    start: usize,
    /// Of one element, in bytes.
    size: usize,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl Elements {
    pub(crate) fn of_matrix<T>(ptr: *const T, (rows, cols): (usize, usize), ld: usize) -> Self {
        Self {
            start: ptr.addr(),
            size: size_of::<T>(),
            rows,
            cols,
            ld,
        }
    }

    fn span(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            0
        } else {
            (self.cols - 1) * self.ld + self.rows
        }
    }

    fn extent(&self) -> Range<usize> {
        self.start..self.start + self.span() * self.size
    }

    /// True if the element at this address is one of them. Both lie on multiples of their
    /// alignment; elements that begin inside of one (a complex one, half an element off) count
    /// as shared.
    fn hold(&self, address: usize) -> bool {
        let distance = address as i128 - self.start as i128;
        let size = self.size as i128;
        let holds = |element: i128| {
            (0..self.span() as i128).contains(&element) && element % (self.ld as i128) < self.rows as i128
        };
        let element = distance.div_euclid(size);
        holds(element) || (distance.rem_euclid(size) != 0 && holds(element + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_increment_counts_from_the_far_end() {
        let mut memory = [0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let values = |n, inc| {
            let vector = Vector::new(memory.as_mut_ptr(), n, inc);
            // SAFETY: within the array.
            (0..n).map(|i| unsafe { *vector.at(i) }).collect::<Vec<_>>()
        };
        let mut values = values;
        assert_eq!(values(4, 2), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(values(4, -2), [6.0, 4.0, 2.0, 0.0]);
        assert_eq!(values(3, 0), [0.0, 0.0, 0.0]);
    }

    #[test]
    fn vectors_meet_a_matrix_if_an_element_of_one_is_an_element_of_the_other() {
        let memory = [0f64; 64];
        for rows in 1..4 {
            for ld in rows..6 {
                for cols in 1..4 {
                    let matrix = Elements::of_matrix(&memory[20], (rows, cols), ld);
                    for (start, inc, n) in (0..40)
                        .flat_map(|start| (-5..6).map(move |inc| (start, inc)))
                        .flat_map(|(start, inc)| (1..5).map(move |n| (start, inc, n)))
                    {
                        let vector = Vector::new(&memory[start], n, inc);
                        let places = |i: i64| start as i64 + i * inc.abs();
                        let shared = (0..n as i64).any(|i| {
                            let offset = places(i) - 20;
                            let (row, col) = (offset.rem_euclid(ld as i64), offset.div_euclid(ld as i64));
                            row < rows as i64 && (0..cols as i64).contains(&col)
                        });
                        assert_eq!(
                            vector.ensure_apart("test", "x", matrix).is_err(),
                            shared,
                            "{rows} x {cols} ld {ld}; {n} from {start} by {inc}"
                        );
                    }
                }
            }
        }
    }
}
