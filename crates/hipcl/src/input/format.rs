//! The formats a sample file may have.

use std::path::Path;

use clap::ValueEnum;

/// Format of a sample file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Interleaved little-endian 32-bit floats.
    Cf32,
    /// Interleaved little-endian 16-bit integers.
    Ci16,
    /// Interleaved signed bytes.
    Ci8,
    /// Interleaved unsigned bytes around 127.5.
    Cu8,
    /// NumPy array of complex64, one-dimensional.
    Npy,
    /// SigMF: a `.sigmf-meta` file beside a `.sigmf-data` file.
    Sigmf,
}

impl Format {
    /// The format for the extension of `path`, if known.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "cf32" | "fc32" | "cfile" => Some(Self::Cf32),
            "ci16" | "sc16" => Some(Self::Ci16),
            "ci8" | "sc8" => Some(Self::Ci8),
            "cu8" => Some(Self::Cu8),
            "npy" => Some(Self::Npy),
            "sigmf-meta" | "sigmf-data" | "sigmf" => Some(Self::Sigmf),
            _ => None,
        }
    }

    /// All names as the command line takes them, with a bar between each.
    pub(crate) fn names() -> String {
        let names: Vec<String> = Self::value_variants()
            .iter()
            .filter_map(|format| format.to_possible_value())
            .map(|value| value.get_name().to_owned())
            .collect();
        names.join("|")
    }
}
