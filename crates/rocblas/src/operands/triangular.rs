use rocblas_sys::{rocblas_diagonal, rocblas_side};

use crate::size::{Layout, shape};
use crate::{Fill, Op, Result};

/// The side of the other matrix on which a triangular matrix stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// `op(a) * b`.
    Left,
    /// `b * op(a)`.
    Right,
}

/// The diagonal of a triangular matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "diagonal")]
pub enum Diag {
    /// As it is stored.
    NonUnit,
    /// All ones; the stored diagonal is not read.
    Unit,
}

/// A triangular matrix as a factor: which part of the stored matrix it is, and how it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// On which side it stands.
    pub side: Side,
    /// Which triangle of the stored matrix it is; the other one is not read.
    pub fill: Fill,
    /// The operation applied to it first.
    pub op: Op,
    /// Its diagonal.
    pub diag: Diag,
}

impl Side {
    pub(crate) fn raw(self) -> rocblas_side {
        match self {
            Self::Left => rocblas_side::rocblas_side_left,
            Self::Right => rocblas_side::rocblas_side_right,
        }
    }
}

impl Diag {
    pub(crate) fn raw(self) -> rocblas_diagonal {
        match self {
            Self::NonUnit => rocblas_diagonal::rocblas_diagonal_non_unit,
            Self::Unit => rocblas_diagonal::rocblas_diagonal_unit,
        }
    }
}

impl Triangle {
    /// Refuses a matrix `a` that is not as large as its side of `b` needs.
    pub(crate) fn check(self, call: &'static str, a: Layout, b: Layout) -> Result<()> {
        let order = match self.side {
            Side::Left => b.rows,
            Side::Right => b.cols,
        };
        if (a.rows, a.cols) == (order, order) {
            return Ok(());
        }
        Err(shape(call, "a", a, order, order))
    }
}
