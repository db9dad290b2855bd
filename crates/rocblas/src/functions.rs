//! What makes a type a rocBLAS scalar: functions for every routine.

use crate::axpy::Axpy;
use crate::copy::{Copy, Swap};
use crate::dot::{Dot, Dotc};
use crate::gemm::Gemm;
use crate::gemm_batched::GemmBatched;
use crate::gemm_strided_batched::GemmStridedBatched;
use crate::gemv::Gemv;
use crate::ger::{Ger, Gerc};
use crate::herk::Herk;
use crate::norm::{Asum, Nrm2};
use crate::scal::{Scal, ScalReal};
use crate::syrk::Syrk;
use crate::trmm::Trmm;
use crate::trsm::Trsm;

/// Bounds on scalars: the routines that all of them have, and those that only complex ones have. Public in name only: the crate
/// does not export this module.
macro_rules! bundle {
    ($bundle:ident: $first:ident $(+ $routine:ident)*) => {
        pub trait $bundle: $first $(+ $routine)* {}
        impl<T: $first $(+ $routine)*> $bundle for T {}
    };
}
bundle!(Blas: Axpy + Copy + Swap + Dot + Dotc + Gemm + GemmBatched + GemmStridedBatched + Gemv + Ger + Gerc + Asum + Nrm2 + Scal + Syrk + Trmm + Trsm);
bundle!(ComplexBlas: Herk + ScalReal);
