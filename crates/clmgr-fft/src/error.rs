//! The errors of planning.

use std::result;

/// Why a transform cannot be planned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option of a [`Builder`](crate::Builder) does not fit.
    #[error("the plan's `{option}`: {reason}")]
    Option {
        /// The method of the builder.
        option: &'static str,
        /// Why it does not fit, and what does.
        reason: String,
    },
    /// An OpenCL call failed, or the device does not support the request.
    #[error(transparent)]
    Cl(#[from] clmgr::Error),
}

/// A [`Result`](result::Result) with this crate's [`Error`].
pub type Result<T> = result::Result<T, Error>;

impl Error {
    /// The OpenCL error code, if this error carries one.
    #[must_use]
    pub fn code(&self) -> Option<clmgr::opencl_sys::cl_int> {
        match self {
            Self::Option { .. } => None,
            Self::Cl(error) => error.code(),
        }
    }
}
