use std::path::PathBuf;

/// What became of one library of a platform.
#[derive(Clone, Debug)]
pub struct LibraryReport {
    /// `HIP`, `HIPRTC`, `rocBLAS`, `rocSOLVER` or `HSA`.
    pub name: &'static str,
    /// Where it came from, or why it is missing.
    pub state: LibraryState,
    /// How many of the functions that this build knows the library has.
    pub functions: usize,
}

/// Where a library came from.
#[derive(Clone, Debug)]
pub enum LibraryState {
    /// Loaded from this file.
    Loaded(PathBuf),
    /// Compiled into the program.
    BuiltIn,
    /// Not there; the text lists what was tried.
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
