//! Calls on a matrix and vectors.

mod gemv;
mod ger;
