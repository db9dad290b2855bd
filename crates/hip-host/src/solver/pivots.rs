//! `ipiv`: for each step of an elimination the row that was exchanged, counted from 1, in device
//! memory.

use rocblas_sys::{rocblas_status, rocblas_stride};

use crate::blas::aliasing::ensure_apart;
use crate::blas::arguments::{Carried, Int, Strided, check_batch, fail_in_stream};
use crate::blas::status::Outcome;

/// Checked to be device memory; read and written in stream order. One vector of `len` for each
/// matrix of a batch.
#[derive(Clone, Copy)]
pub(super) struct Pivots<I> {
    ptr: Carried<*mut I>,
    stride: i64,
    len: usize,
    count: usize,
}

/// How a call names them.
#[derive(Clone, Copy)]
pub(super) struct Given<I> {
    pub(super) ptr: *mut I,
    pub(super) stride: rocblas_stride,
}

impl<I: Int> Pivots<I> {
    pub(super) fn new(call: &str, given: Given<I>, len: usize, count: usize) -> Outcome<Self> {
        let batch = Self::batch(given, len);
        if len != 0 && count != 0 {
            if given.ptr.is_null() {
                return Err(rocblas_status::rocblas_status_invalid_pointer);
            }
            check_batch(call, "ipiv", batch, (len, 1), count)?;
        }
        Ok(Self {
            ptr: Carried(given.ptr),
            stride: given.stride,
            len,
            count,
        })
    }

    /// As `new`, for vectors that are written: they must not overlap.
    pub(super) fn of_result(call: &str, given: Given<I>, len: usize, count: usize) -> Outcome<Self> {
        let pivots = Self::new(call, given, len, count)?;
        ensure_apart(call, Self::batch(given, len), (len, 1), count)?;
        Ok(pivots)
    }

    fn batch(given: Given<I>, len: usize) -> Strided<*const I> {
        Strided {
            ptr: given.ptr.cast_const(),
            ld: len.max(1),
            stride: given.stride,
        }
    }

    fn at(&self, i: usize) -> *mut I {
        self.ptr
            .get()
            .wrapping_offset((self.stride as isize).wrapping_mul(i as isize))
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
        (0..self.count)
            .map(|i| (0..self.len).map(|step| row(i, step)).collect())
            .collect()
    }

    /// Stores the vector of matrix `i`. To be called in stream order, once for each matrix.
    pub(super) fn write(&self, i: usize, pivots: &[usize]) {
        for (step, row) in pivots.iter().enumerate().take(self.len) {
            // SAFETY: as in `read`; vectors of different matrices do not overlap.
            unsafe { self.at(i).wrapping_add(step).write(I::from_index(row + 1)) };
        }
    }
}
