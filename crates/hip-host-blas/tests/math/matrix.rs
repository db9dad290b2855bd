//! Matrices in plain slices.

use proptest::prelude::*;
use rocblas_sys::rocblas_operation;

use crate::number::{C64, Number};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    None,
    Transpose,
    ConjTranspose,
}

impl Op {
    pub fn c(self) -> rocblas_operation {
        match self {
            Op::None => rocblas_operation::rocblas_operation_none,
            Op::Transpose => rocblas_operation::rocblas_operation_transpose,
            Op::ConjTranspose => rocblas_operation::rocblas_operation_conjugate_transpose,
        }
    }
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![Just(Op::None), Just(Op::Transpose), Just(Op::ConjTranspose)]
}

/// Rows and columns after `op` of a matrix stored as `rows` x `cols`, and the other way round.
pub fn stored(op: Op, rows: usize, cols: usize) -> (usize, usize) {
    if op == Op::None { (rows, cols) } else { (cols, rows) }
}

/// Element (i, j) after `op`.
pub fn element<T: Number>(data: &[T], ld: usize, op: Op, i: usize, j: usize) -> C64 {
    match op {
        Op::None => data[i + j * ld].wide(),
        Op::Transpose => data[j + i * ld].wide(),
        Op::ConjTranspose => data[j + i * ld].wide().conj(),
    }
}

/// True if index `i` of a buffer is an element of the matrix at its start.
pub fn inside(i: usize, rows: usize, cols: usize, ld: usize) -> bool {
    i % ld < rows && i / ld < cols
}
