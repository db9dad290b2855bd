//! `cargo xtask symbols`: what the real libraries of each release export, and what changed between releases.
//!
//! | command | file |
//! |---|---|
//! | `symbols [--verbose]`: how far each library fills its table | `report` |
//! | `symbols A B`: what changed in the declarations from one release to another | `compare` |
//! | `symbols --refresh`: fetch the libraries, read their dynamic symbols and write the lists | `refresh`, `elf` |
//!
//! Everything but `--refresh` works from what is committed below `xtask/symbols`: the lists of exported functions
//! ([`list`]) and the facts about the headers ([`facts`]). [`check`] finds out whether both agree with the tables.

pub mod check;
mod compare;
#[cfg(feature = "codegen")]
mod elf;
mod facts;
pub mod list;
#[cfg(feature = "codegen")]
mod refresh;
mod report;

use std::path::Path;

#[cfg(not(feature = "codegen"))]
use xshell::Shell;

use crate::codegen::{self, Result};

/// What to show; how far each library fills its table if nothing is named.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct Options {
    /// List the functions, too
    #[arg(long)]
    verbose: bool,
    /// Read the symbol lists of the libraries again (downloads gigabytes)
    #[arg(long)]
    refresh: bool,
    /// Show what changed between these two releases, e.g. `6.4 7.2`
    #[arg(num_args = 2, value_names = ["FROM", "TO"])]
    releases: Vec<String>,
}

/// Runs the task.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    match options.releases.as_slice() {
        [from, to] => print!("{}", compare::run(root, from, to)?),
        _ if options.refresh => refresh_lists(root)?,
        _ => print!("{}", report::text(root, options.verbose)?),
    }
    Ok(())
}

#[cfg(feature = "codegen")]
fn refresh_lists(root: &Path) -> Result<()> {
    refresh::run(root, &codegen::work_folder(root))
}

/// Reading a library needs the Cargo feature `codegen`.
#[cfg(not(feature = "codegen"))]
fn refresh_lists(root: &Path) -> Result<()> {
    codegen::rerun_with_feature(&Shell::new()?, root, &["symbols", "--refresh"], &[])
}
