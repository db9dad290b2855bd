use hip::Stream;
use rocblas::solver::{Pointers as AnyWhere, Single, Strided};
use rocblas::{BatchMut, MatrixMut, PointerBatchMut, Scalar};

use crate::Result;
use crate::blas::{Batch, Extent, Matrix, MemoryMut, Name, Pointers};

/// A solver's in-place operand: a [`Matrix`], a [`Batch`] or [`Pointers`] in memory that may be written. The type
/// chooses among the C functions of a routine, as [`rocblas::solver::Matrices`] does.
pub trait InPlace: sealed::Take<<Self as InPlace>::Scalar, <Self as InPlace>::Form> {
    /// The type of the elements.
    type Scalar: Scalar;
    /// Equal for types that go together in one call, as matrices and right-hand sides do.
    type Form;
}

pub(crate) mod sealed {
    use rocblas::solver::Matrices;

    use super::{Extent, Name, Result, Stream};

    /// Public in name only: the crate does not export this module.
    pub trait Take<S, F> {
        type Matrices<'s>: Matrices<Scalar = S, Form = F>
        where
            Self: 's;

        /// Access on the stream.
        fn take<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, Self::Matrices<'s>)>
        where
            Self: 's;
    }
}

macro_rules! in_place {
    ($(($($life:lifetime)?) $matrices:ty => $held:ident, $form:ty;)+) => {$(
        impl<$($life,)? T: Scalar, M: MemoryMut<Element = T>> InPlace for $matrices {
            type Scalar = T;
            type Form = $form;
        }

        impl<$($life,)? T: Scalar, M: MemoryMut<Element = T>> sealed::Take<T, $form>
            for $matrices
        {
            type Matrices<'s>
                = $held<'s, T>
            where
                Self: 's;

            fn take<'s>(self, name: Name, stream: &'s Stream) -> Result<(Extent, $held<'s, T>)>
            where
                Self: 's,
            {
                self.take_mut(name, stream)
            }
        }
    )+};
}
in_place! {
    () Matrix<M> => MatrixMut, Single;
    () Batch<M> => BatchMut, Strided;
    ('o) Pointers<'o, T, M> => PointerBatchMut, AnyWhere;
}
