//! rocSOLVER's C functions by routine: which one a call means follows from its scalar and from the form of its
//! operands.

mod operand;
mod routines;
mod target;

use num_complex::Complex;
pub(crate) use operand::{Form, Operand, RawPivots};
pub(crate) use routines::SolverRoutines;
pub(crate) use target::{Called, Target};

/// All of them for one scalar. Public in name only: the crate does not export this module.
pub trait Routines: SolverRoutines {
    /// The element's type in mirror.hip.
    const ELEMENT: &'static str;
}

impl Routines for f32 {
    const ELEMENT: &'static str = "float";
}

impl Routines for f64 {
    const ELEMENT: &'static str = "double";
}

impl Routines for Complex<f32> {
    const ELEMENT: &'static str = "complex<float>";
}

impl Routines for Complex<f64> {
    const ELEMENT: &'static str = "complex<double>";
}
