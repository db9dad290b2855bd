//! Calls on vectors.

mod axpy;
mod copy;
mod dot;
mod norm;
mod reduction;
mod scal;
