//! `ipiv`: for each step of an elimination the row that was exchanged, counted from 1, in device
//! memory.

use crate::blas::arguments::{Int, fail_in_stream};
use crate::blas::batch::{Batch, Place};
use crate::blas::status::Outcome;

/// Checked to be device memory; read and written in stream order. One vector for each matrix of a
/// batch.
#[derive(Clone, Copy)]
pub(super) struct Pivots<I>(Batch<I>);

impl<I: Int> Pivots<I> {
    pub(super) fn new(call: &str, place: Place<I>, len: usize, count: usize) -> Outcome<Self> {
        let pivots = Self::of(place, len, count);
        pivots.0.check(call, "ipiv")?;
        Ok(pivots)
    }

    /// As `new`, for vectors that are written: they must not overlap.
    pub(super) fn of_result(call: &str, place: Place<I>, len: usize, count: usize) -> Outcome<Self> {
        let pivots = Self::of(place, len, count);
        pivots.0.check_result(call, "ipiv")?;
        Ok(pivots)
    }

    fn of(place: Place<I>, len: usize, count: usize) -> Self {
        Self(Batch {
            place,
            shape: (len, 1),
            ld: len.max(1),
            count,
        })
    }

    fn at(&self, i: usize) -> *mut I {
        // SAFETY: checked at the call; freeing device memory waits for the stream.
        unsafe { self.0.target(i) }.ptr
    }

    /// All vectors, counted from 0. A number that is no row of an `n` x `n` matrix is an
    /// asynchronous error of the stream; on the device rows outside of the matrix would be
    /// exchanged. To be called in stream order.
    pub(super) fn read(&self, call: &str, n: usize) -> Vec<Vec<usize>> {
        let row = |i: usize, step: usize| {
            // SAFETY: checked at the call; freeing device memory waits for the stream.
            let value = unsafe { self.at(i).wrapping_add(step).read() };
            match value.size() {
                Some(row @ 1..) if row <= n => row - 1,
                _ => fail_in_stream(format!("{call}: ipiv[{step}] of matrix {i} is no row")),
            }
        };
        (0..self.0.count)
            .map(|i| (0..self.0.shape.0).map(|step| row(i, step)).collect())
            .collect()
    }

    /// Stores the vector of matrix `i`. To be called in stream order, once for each matrix.
    pub(super) fn write(&self, i: usize, pivots: &[usize]) {
        for (step, row) in pivots.iter().enumerate().take(self.0.shape.0) {
            // SAFETY: as in `read`; vectors of different matrices do not overlap.
            unsafe { self.at(i).wrapping_add(step).write(I::from_index(row + 1)) };
        }
    }
}
