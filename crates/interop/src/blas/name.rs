use crate::{Error, Result};

/// An argument of a call, for messages. Public in name only: the crate does not export this module.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub(crate) call: &'static str,
    pub(crate) argument: &'static str,
}

impl Name {
    /// Names the argument in an error.
    pub(crate) fn of<T>(self, result: rocblas::Result<T>) -> Result<T> {
        result.map_err(|cause| Error::Operand {
            call: self.call,
            argument: self.argument,
            cause: Box::new(cause),
        })
    }
}
