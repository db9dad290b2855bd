//! rocSOLVER's C functions by routine: which one a call means follows from its scalar and from the form of its operands.

mod cholesky;
mod lu;

use hip::Stream;
use num_complex::Complex;
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_status};

pub(super) use cholesky::CholeskyRoutines;
pub(super) use lu::LuRoutines;

/// Where a routine is called: the same for all of its forms.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub(super) api: &'a rocsolver_sys::Api,
    pub(super) handle: rocblas_handle,
    pub(super) stream: &'a Stream,
    /// Matrices of a batch; the form for one matrix does not use it.
    pub(super) count: rocblas_int,
}

/// The C function that was called, and what it returned.
pub type Called = (&'static str, rocblas_status);

/// All of them for one scalar. Public in name only: the crate does not export this module.
pub trait Routines: LuRoutines + CholeskyRoutines {
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

/// Calls the function of this name on the stream's device.
macro_rules! call {
    ($at:ident, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = slot($at.api.$name, stringify!($name))?;
        $at.stream.device().make_current()?;
        // SAFETY: the caller's promise is the callee's demand.
        let status = unsafe { function($at.handle, $($argument),*) };
        Ok((stringify!($name), status))
    }};
}

use call;
