use hip::Stream;

use crate::functions::solver::{Form, Operand};
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
