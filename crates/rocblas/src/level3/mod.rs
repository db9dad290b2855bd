//! Calls on symmetric, Hermitian and triangular matrices.

mod herk;
mod syrk;
mod trmm;
mod trsm;
