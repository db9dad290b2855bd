use hip::DeviceMemoryMut;

use super::held::Held;
use crate::operands::Call;
use crate::size::Layout;
use crate::{Batch, Matrix, Pointers, Result, Scalar};

/// The in-place operand of a solver call, in memory that can be written: one [`Matrix`], equal ones at a stride
/// ([`Batch`]), or equal ones anywhere ([`Pointers`]).
///
/// The type chooses among the C functions of a routine: `rocsolver_?getrf`, `rocsolver_?getrf_strided_batched` or
/// `rocsolver_?getrf_batched`.
pub trait Matrices: sealed::Take<<Self as Matrices>::Scalar> {
    /// The type of the elements.
    type Scalar: Scalar;
    /// Equal for types that go together in one call, as factors and right-hand sides do.
    type Form;
}

/// The form of a [`Matrix`].
#[derive(Debug)]
pub enum Single {}

/// The form of a [`Batch`].
#[derive(Debug)]
pub enum Strided {}

/// The form of [`Pointers`].
#[derive(Debug)]
pub enum Batched {}

pub(crate) mod sealed {
    use super::{Call, Held, Layout, Result};

    /// Public in name only: the crate does not export this module.
    pub trait Take<T> {
        /// Sizes of each matrix.
        fn layout(&self) -> Layout;

        /// Takes the memory.
        fn take<'h, 's>(self, call: &mut Call<'h>, argument: &'static str) -> Result<Held<'s, T>>
        where
            'h: 's,
            Self: 's;
    }
}

macro_rules! matrices {
    ($(<$($life:lifetime,)? $memory:ident: $bound:path> $matrices:ty: $form:ident,
        |$operand:ident| $layout:expr, |$call:ident, $argument:ident| $take:expr;)+) => {$(
        impl<$($life,)? T: Scalar, $memory: $bound> Matrices for $matrices {
            type Scalar = T;
            type Form = $form;
        }

        impl<$($life,)? T: Scalar, $memory: $bound> sealed::Take<T> for $matrices {
            fn layout(&self) -> Layout {
                let $operand = self;
                $layout
            }

            fn take<'h, 's>(self, $call: &mut Call<'h>, $argument: &'static str) -> Result<Held<'s, T>>
            where
                'h: 's,
                Self: 's,
            {
                let $operand = self;
                $take
            }
        }
    )+};
}
matrices! {
    <M: DeviceMemoryMut<Element = T>> Matrix<M>: Single,
        |matrix| matrix.layout, |call, argument| call.write(argument, matrix).map(Held::matrix);
    <M: DeviceMemoryMut<Element = T>> Batch<M>: Strided,
        |batch| batch.shape().layout, |call, argument| call.write(argument, batch).map(Held::batch);
    <'p, S: IntoIterator<Item: DeviceMemoryMut<Element = T>>> Pointers<'p, T, S>: Batched,
        |matrices| matrices.layout(), |call, argument| matrices.write(call, argument).map(Held::pointers);
}
