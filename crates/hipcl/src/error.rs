//! What can go wrong in a run, as one line for the user.

use std::path::{Path, PathBuf};

/// Result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run could not be carried out. Every message is one line that names the cause and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user's input cannot be used: what is wrong, and what to do.
    #[error("{0}")]
    Input(String),
    /// No platform, or not the requested one.
    #[error(transparent)]
    Platform(#[from] platform::Error),
    /// The bridge between the two APIs.
    #[error(transparent)]
    Interop(#[from] interop::Error),
    /// The processes that run a job together.
    #[error(transparent)]
    World(#[from] interop::world::WorldError),
    /// A HIP call.
    #[error(transparent)]
    Hip(#[from] hip::Error),
    /// A rocBLAS or rocSOLVER call.
    #[error(transparent)]
    Rocblas(rocblas::Error),
    /// An OpenCL call.
    #[error(transparent)]
    Cl(#[from] clmgr::Error),
    /// A transform that cannot be planned.
    #[error(transparent)]
    Fft(#[from] clmgr_fft::Error),
    /// A file could not be read or written.
    #[error("cannot {action} `{}`: {cause}; {remedy}", path.display())]
    Io {
        /// "read", "write", …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        cause: std::io::Error,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// The picture could not be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
}

/// The bridge's own error, if a call could not take shared memory.
impl From<rocblas::Error> for Error {
    fn from(error: rocblas::Error) -> Self {
        match interop::Error::from(error) {
            interop::Error::Blas(error) => Self::Rocblas(error),
            error => Self::Interop(error),
        }
    }
}

impl From<interop::rccl::Error> for Error {
    fn from(error: interop::rccl::Error) -> Self {
        Self::Interop(error.into())
    }
}

impl Error {
    /// Bad input: `message` names the cause and the remedy.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// A file that cannot be read.
    pub fn read(path: &Path, cause: std::io::Error) -> Self {
        Self::Io {
            action: "read",
            path: path.into(),
            cause,
            remedy: "check the path and its permissions",
        }
    }

    /// A file that cannot be written.
    pub fn write(path: &Path, cause: std::io::Error) -> Self {
        Self::Io {
            action: "write",
            path: path.into(),
            cause,
            remedy: "name a file in an existing, writable folder",
        }
    }

    /// The message on exactly one line: compilers' logs inside it keep their text, not their line breaks.
    pub fn one_line(&self) -> String {
        one_line(&self.to_string())
    }
}

/// Folds a text of several lines into one.
pub(crate) fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" | ")
}
