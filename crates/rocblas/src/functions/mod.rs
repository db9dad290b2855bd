//! The C functions of each routine, by scalar, and what makes a type a scalar: functions for every routine.

pub(crate) mod level1;
pub(crate) mod level2;
pub(crate) mod level3;
mod routine;
pub(crate) mod solver;

use level1::{Asum, Axpy, Copy, Dot, Dotc, Nrm2, Scal, ScalReal, Swap};
use level2::{Gemv, Ger, Gerc};
use level3::{Gemm, GemmBatched, GemmStridedBatched, Herk, Syrk, Trmm, Trsm};
pub(crate) use routine::{CType, Routine};

/// Bounds on scalars: the routines that all of them have, and those that only complex ones have. Public in name only:
/// the crate does not export this module.
macro_rules! bundle {
    ($bundle:ident: $first:ident $(+ $routine:ident)*) => {
        pub trait $bundle: $first $(+ $routine)* {}
        impl<T: $first $(+ $routine)*> $bundle for T {}
    };
}
bundle!(Blas: Axpy + Copy + Swap + Dot + Dotc + Gemm + GemmBatched + GemmStridedBatched + Gemv + Ger + Gerc + Asum + Nrm2 + Scal + Syrk + Trmm + Trsm);
bundle!(ComplexBlas: Herk + ScalReal);
