use std::ffi::c_void;

use hip::Stream;
use rocblas_sys::{rocblas_int, rocblas_stride};

use crate::size::{int, stride};
use crate::{BatchMut, MatrixMut, PointerBatchMut, Result, Scalar};

/// The in-place operand of a solver call: one matrix ([`MatrixMut`]), equal ones at a stride ([`BatchMut`]), or equal
/// ones anywhere ([`PointerBatchMut`]).
///
/// The type chooses among the C functions of a routine: `rocsolver_?getrf`, `rocsolver_?getrf_strided_batched` or
/// `rocsolver_?getrf_batched`.
pub trait Matrices: sealed::Operands {
    /// The type of the elements.
    type Scalar: Scalar;
    /// Equal for types that go together in one call, as factors and right-hand sides do.
    type Form;
}

/// The form of [`MatrixMut`].
#[derive(Debug)]
pub enum Single {}

/// The form of [`BatchMut`].
#[derive(Debug)]
pub enum Strided {}

/// The form of [`PointerBatchMut`].
#[derive(Debug)]
pub enum Pointers {}

impl<T: Scalar> Matrices for MatrixMut<'_, T> {
    type Scalar = T;
    type Form = Single;
}

impl<T: Scalar> Matrices for BatchMut<'_, T> {
    type Scalar = T;
    type Form = Strided;
}

impl<T: Scalar> Matrices for PointerBatchMut<'_, T> {
    type Scalar = T;
    type Form = Pointers;
}

/// For batches that are reused: making the array of addresses, and dropping it, waits for the device.
impl<T: Scalar> Matrices for &mut PointerBatchMut<'_, T> {
    type Scalar = T;
    type Form = Pointers;
}

/// Which of a routine's functions takes an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `rocsolver_?getrf`.
    Single,
    /// `rocsolver_?getrf_strided_batched`.
    Strided,
    /// `rocsolver_?getrf_batched`.
    Pointers,
}

/// A matrix or a batch as the C functions take it.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    pub(super) form: Form,
    pub(super) address: *mut c_void,
    pub(super) ld: rocblas_int,
    pub(super) stride: rocblas_stride,
}

impl Operand {
    /// The first matrix, for [`Form::Single`] and [`Form::Strided`].
    pub(super) fn elements<R>(self) -> *mut R {
        self.address.cast()
    }

    /// The array of addresses, for [`Form::Pointers`].
    pub(super) fn pointers<R>(self) -> *const *mut R {
        self.address.cast_const().cast()
    }

    /// For messages: the distances that go with the argument called `name`.
    pub(super) fn distances(self, name: &str) -> String {
        let ld = format!("ld{name} {}", self.ld);
        match self.form {
            Form::Single | Form::Pointers => ld,
            Form::Strided => format!("{ld}, stride {}", self.stride),
        }
    }
}

pub(crate) mod sealed {
    use super::{Form, Operand, Result, Stream};

    /// What the calls need to know about their operands. Public in name only: the crate does not export this module.
    pub trait Operands {
        const FORM: Form;

        /// Rows and columns of each matrix.
        fn shape(&self) -> (usize, usize);
        fn count(&self) -> usize;
        fn stream(&self) -> &Stream;
        fn operand(&self) -> Result<Operand>;
    }
}

impl<T> sealed::Operands for MatrixMut<'_, T> {
    const FORM: Form = Form::Single;

    fn shape(&self) -> (usize, usize) {
        (self.layout.rows, self.layout.cols)
    }

    fn count(&self) -> usize {
        1
    }

    fn stream(&self) -> &Stream {
        self.data.stream()
    }

    fn operand(&self) -> Result<Operand> {
        Ok(Operand {
            form: Self::FORM,
            address: self.data.as_slice().as_ptr().cast_mut().cast(),
            ld: int("leading dimension", self.layout.ld)?,
            stride: 0,
        })
    }
}

impl<T> sealed::Operands for BatchMut<'_, T> {
    const FORM: Form = Form::Strided;

    fn shape(&self) -> (usize, usize) {
        (self.layout.rows, self.layout.cols)
    }

    fn count(&self) -> usize {
        self.count
    }

    fn stream(&self) -> &Stream {
        self.data.stream()
    }

    fn operand(&self) -> Result<Operand> {
        Ok(Operand {
            form: Self::FORM,
            address: self.data.as_slice().as_ptr().cast_mut().cast(),
            ld: int("leading dimension", self.layout.ld)?,
            stride: stride(self.stride)?,
        })
    }
}

impl<T> sealed::Operands for PointerBatchMut<'_, T> {
    const FORM: Form = Form::Pointers;

    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn count(&self) -> usize {
        PointerBatchMut::count(self)
    }

    fn stream(&self) -> &Stream {
        PointerBatchMut::stream(self)
    }

    fn operand(&self) -> Result<Operand> {
        Ok(Operand {
            form: Self::FORM,
            address: self.array_address()?.cast_mut().cast(),
            ld: int("leading dimension", self.ld())?,
            stride: 0,
        })
    }
}

impl<T> sealed::Operands for &mut PointerBatchMut<'_, T> {
    const FORM: Form = Form::Pointers;

    fn shape(&self) -> (usize, usize) {
        sealed::Operands::shape(&**self)
    }

    fn count(&self) -> usize {
        sealed::Operands::count(&**self)
    }

    fn stream(&self) -> &Stream {
        sealed::Operands::stream(&**self)
    }

    fn operand(&self) -> Result<Operand> {
        sealed::Operands::operand(&**self)
    }
}
