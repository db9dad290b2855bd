use rocblas_sys::{rocblas_fill, rocblas_operation};

/// The operation applied to a matrix before use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Nothing.
    None,
    /// Transposed.
    Transpose,
    /// Transposed and conjugated; the same as `Transpose` for real scalars.
    ConjTranspose,
}

/// Which triangle of a symmetric or Hermitian matrix is stored, diagonal included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "uplo")]
pub enum Fill {
    /// The upper one.
    Upper,
    /// The lower one.
    Lower,
}

impl Op {
    #[inline]
    pub(crate) fn raw(self) -> rocblas_operation {
        match self {
            Self::None => rocblas_operation::rocblas_operation_none,
            Self::Transpose => rocblas_operation::rocblas_operation_transpose,
            Self::ConjTranspose => rocblas_operation::rocblas_operation_conjugate_transpose,
        }
    }

    /// Rows and columns after the operation.
    #[inline]
    pub(crate) fn shape(self, rows: usize, cols: usize) -> (usize, usize) {
        match self {
            Self::None => (rows, cols),
            Self::Transpose | Self::ConjTranspose => (cols, rows),
        }
    }
}

impl Fill {
    pub(crate) fn raw(self) -> rocblas_fill {
        match self {
            Self::Upper => rocblas_fill::rocblas_fill_upper,
            Self::Lower => rocblas_fill::rocblas_fill_lower,
        }
    }
}
