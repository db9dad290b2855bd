//! Why a library could not be loaded.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Release;

/// One place that was tried, and what was wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// A path, or a bare name that the dynamic linker resolves.
    pub path: PathBuf,
    /// One line.
    pub reason: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.reason)
    }
}

/// A library could not be loaded. Every message is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No place in the search order has the library.
    #[error(
        "no {library} found: tried {}; install ROCm, or set {env} to the library's path",
        list(tried)
    )]
    NotFound {
        /// The library, without suffix.
        library: &'static str,
        /// The variable that names the file explicitly.
        env: &'static str,
        /// Everything that was tried, in order.
        tried: Vec<Tried>,
    },
    /// A named file does not exist.
    #[error("{library}: no such file: {}{}", path.display(), origin(env))]
    Missing {
        /// The library, without suffix.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// The variable that named it, if one did.
        env: Option<&'static str>,
    },
    /// The file is not a shared library at all.
    #[error("{library}: {} is not a shared library: {reason}{}", path.display(), origin(env))]
    NotALibrary {
        /// The library, without suffix.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// What its first bytes say.
        reason: String,
        /// The variable that named it, if one did.
        env: Option<&'static str>,
    },
    /// The file is a shared library of another processor.
    #[error("{library}: {} is built for {found}, but this process runs on {expected}{}", path.display(), origin(env))]
    WrongArchitecture {
        /// The library, without suffix.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// The processor it is built for.
        found: String,
        /// The processor of this process.
        expected: &'static str,
        /// The variable that named it, if one did.
        env: Option<&'static str>,
    },
    /// The dynamic linker refused the file, usually because a library it needs is absent.
    #[error("{library}: cannot open {}: {reason}{}", path.display(), origin(env))]
    Open {
        /// The library, without suffix.
        library: &'static str,
        /// The file, or the name passed to the dynamic linker.
        path: PathBuf,
        /// The dynamic linker's words.
        reason: String,
        /// The variable that named it, if one did.
        env: Option<&'static str>,
    },
    /// The library opened, but it is a different one: it lacks a function that every release has.
    #[error("{library}: {} has no function `{symbol}`, so it is a different library{}", path.display(), origin(env))]
    MissingSymbol {
        /// The library, without suffix.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// The function that every release has.
        symbol: &'static str,
        /// The variable that named it, if one did.
        env: Option<&'static str>,
    },
    /// The library's release is no longer supported. The search ends there: two copies of a runtime in one process
    /// do not know each other's memory.
    #[error(
        "{library}: {} belongs to ROCm {found}, but {oldest} is the oldest supported release: {lacking}; install a newer release{}",
        path.display(), choice(variable, env)
    )]
    TooOld {
        /// The library, without suffix.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// The release it is of.
        found: Release,
        /// The oldest supported release.
        oldest: Release,
        /// What older releases lack.
        lacking: &'static str,
        /// The variable that may name another file.
        variable: &'static str,
        /// The variable that named this file, if one did.
        env: Option<&'static str>,
    },
    /// The program was not linked with the library after all.
    #[error(
        "{library}: no library that this program is linked with has `{symbol}`; load the library at run time instead"
    )]
    NotLinked {
        /// The library, without suffix.
        library: &'static str,
        /// The function that every release has.
        symbol: &'static str,
    },
    /// This process now has two different files of a runtime that keeps its state in the library itself.
    #[error(
        "two different copies of {library} in this process: {} and {}; neither knows the other's memory; use one ROCm installation (check LD_LIBRARY_PATH and ROCM_PATH)",
        first.display(),
        second.display()
    )]
    TwoCopies {
        /// The duplicate runtime, without suffix.
        library: &'static str,
        /// The file that is mapped at the lower address.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
}

impl LoadError {
    /// Records that an environment variable named the file.
    pub(crate) fn named_by(mut self, variable: &'static str) -> Self {
        match &mut self {
            Self::NotFound { .. } | Self::NotLinked { .. } | Self::TwoCopies { .. } => {}
            Self::Missing { env, .. }
            | Self::NotALibrary { env, .. }
            | Self::WrongArchitecture { env, .. }
            | Self::Open { env, .. }
            | Self::MissingSymbol { env, .. }
            | Self::TooOld { env, .. } => *env = Some(variable),
        }
        self
    }

    /// The file that was wrong; `None` if there was no file.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::NotFound { .. } | Self::NotLinked { .. } => Path::new(""),
            Self::Missing { path, .. }
            | Self::NotALibrary { path, .. }
            | Self::WrongArchitecture { path, .. }
            | Self::Open { path, .. }
            | Self::MissingSymbol { path, .. }
            | Self::TooOld { path, .. } => path,
            Self::TwoCopies { second, .. } => second,
        }
    }

    /// The text for this failure in a list of tried places.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::NotFound { .. } => "not found".into(),
            Self::Missing { .. } => "no such file".into(),
            Self::NotALibrary { reason, .. } => format!("not a shared library: {reason}"),
            Self::WrongArchitecture { found, .. } => format!("built for {found}"),
            Self::Open { reason, .. } => reason.clone(),
            Self::MissingSymbol { symbol, .. } => format!("has no function `{symbol}`"),
            Self::TooOld { found, .. } => format!("ROCm {found} is too old"),
            Self::NotLinked { .. } => "not linked".into(),
            Self::TwoCopies { first, .. } => {
                format!("another copy is in use: {}", first.display())
            }
        }
    }
}

fn list(tried: &[Tried]) -> String {
    tried.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How to choose another file than the one found.
fn choice(variable: &str, env: &Option<&'static str>) -> String {
    match env {
        Some(_) => origin(env),
        None => format!(", or set {variable} to its library"),
    }
}

fn origin(env: &Option<&'static str>) -> String {
    env.map(|env| format!("; {env} names it: correct or unset the variable"))
        .unwrap_or_default()
}
