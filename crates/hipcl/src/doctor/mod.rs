//! What was found on this machine, which devices belong together, and which routes work.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::{Result, cli};

mod examine;
mod findings;

pub use findings::{Compiler, Findings, HipDevice, Library, OpenClDevice, Pair, RouteState, Tried};

/// Options of `hipcl doctor`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Print the findings as JSON; with a file name, write them there and print the text as well.
    #[arg(long, value_name = "F.json", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
}

/// Examines the machine and prints what was found. Status 0 if a direct route works, else 1.
///
/// # Errors
/// An unknown platform name, or a file that can't be written.
pub fn main(options: &Options) -> Result<ExitCode> {
    let file = match &options.json {
        Some(Some(path)) => Some(crate::output::OutputFile::reserve(path)?),
        _ => None,
    };
    let findings = examine::examine()?;
    if options.json == Some(None) {
        cli::print(&findings.to_json())?;
    } else {
        cli::print(&findings.to_string())?;
    }
    if let Some(file) = file {
        file.commit(findings.to_json().as_bytes())?;
    }
    Ok(ExitCode::from(u8::from(!findings.healthy)))
}
