//! Where and how a routine is called.

use hip::Stream;
use rocblas_sys::{rocblas_handle, rocblas_int, rocblas_status};

/// Where a routine is called: the same for all of its forms.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub(crate) api: &'a rocsolver_sys::Api,
    pub(crate) handle: rocblas_handle,
    pub(crate) stream: &'a Stream,
    /// Matrices of a batch; the form for one matrix does not use it.
    pub(crate) count: rocblas_int,
}

/// The C function that was called, and what it returned.
pub type Called = (&'static str, rocblas_status);

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

pub(super) use call;
