use std::path::PathBuf;

use hip_sys::{Release, versions};

/// The newest release of HIP whose declarations the function tables were made from.
pub const NEWEST_KNOWN: Release = versions::NEWEST;

/// The state of one library of a platform.
#[derive(Clone, Debug)]
pub struct LibraryReport {
    /// `HIP`, `HIPRTC`, `rocBLAS`, `rocSOLVER` or `HSA`; of collectives `RCCL` or `NCCL`.
    pub name: &'static str,
    /// Where it came from, or why it is missing.
    pub state: LibraryState,
    /// How many of the functions known to this build the library has.
    pub functions: usize,
    /// The release that the library reports, in HIP's numbering; only for AMD's HIP library.
    pub release: Option<Release>,
}

impl LibraryReport {
    /// Whether the library is newer than every release that the bindings were made from: it is used, but its additions
    /// are unknown.
    #[must_use]
    pub fn is_newer_than_known(&self) -> bool {
        self.release.is_some_and(versions::is_newer_than_known)
    }
}

/// Where a library came from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LibraryState {
    /// Loaded from this file.
    Loaded(PathBuf),
    /// Compiled into the program.
    BuiltIn,
    /// Missing; the text lists what was tried.
    Missing(String),
}

impl LibraryState {
    /// Whether the library can be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !matches!(self, Self::Missing(_))
    }
}

impl std::fmt::Display for LibraryState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Loaded(path) => write!(f, "{}", path.display()),
            Self::BuiltIn => f.write_str("built in"),
            Self::Missing(reason) => write!(f, "missing: {reason}"),
        }
    }
}
