//! Matrices and pivots as the C functions take them.

use std::ffi::c_void;

use rocblas_sys::{rocblas_int, rocblas_stride};

/// Which of a routine's functions takes an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `rocsolver_?getrf`.
    Single,
    /// `rocsolver_?getrf_strided_batched`.
    Strided,
    /// `rocsolver_?getrf_batched`.
    Batched,
}

/// A matrix or a batch as the C functions take it.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    pub(crate) form: Form,
    pub(crate) address: *mut c_void,
    pub(crate) ld: rocblas_int,
    pub(crate) stride: rocblas_stride,
}

impl Operand {
    /// The first matrix, for [`Form::Single`] and [`Form::Strided`].
    pub(crate) fn elements<R>(self) -> *mut R {
        self.address.cast()
    }

    /// The array of addresses, for [`Form::Batched`].
    pub(crate) fn pointers<R>(self) -> *const *mut R {
        self.address.cast_const().cast()
    }

    /// For messages: the distances that go with the argument called `name`.
    pub(crate) fn distances(self, name: &str) -> String {
        let ld = format!("ld{name} {}", self.ld);
        match self.form {
            Form::Single | Form::Batched => ld,
            Form::Strided => format!("{ld}, stride {}", self.stride),
        }
    }
}

/// Pivots as the C functions take them.
#[derive(Debug, Clone, Copy)]
pub struct RawPivots {
    pub(crate) address: *mut i32,
    pub(crate) stride: rocblas_stride,
}
