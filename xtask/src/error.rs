//! One error type, because what matters to the caller is the line it reads and the exit status.

use std::fmt;

/// Why a task stopped.
#[derive(Debug)]
pub enum Error {
    /// The command line was wrong.
    Usage(String),
    /// The machine lacks something; the text names it and the remedy.
    Missing(String),
    /// The task ran and found something wrong.
    Failed(String),
}

/// The result of every task.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The exit status: 2 when nothing could be tried, 1 when something was tried and failed.
    pub fn status(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::Missing(_) => 2,
            Error::Failed(_) => 1,
        }
    }

    /// An input or output error with the thing it happened to.
    pub fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        Error::Failed(format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Missing(text) | Error::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<xshell::Error> for Error {
    fn from(error: xshell::Error) -> Self {
        Error::Failed(error.to_string())
    }
}
