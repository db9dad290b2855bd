//! Libraries that offer no device.

use std::path::PathBuf;

/// A library that was tried, and why it offers no device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The library, driver file or folder.
    pub path: PathBuf,
    /// Why it offers no device.
    pub reason: String,
}

pub(super) fn list(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return "nothing".to_owned();
    }
    tried
        .iter()
        .map(|attempt| format!("{}: {}", attempt.path.display(), attempt.reason))
        .collect::<Vec<_>>()
        .join(", ")
}
