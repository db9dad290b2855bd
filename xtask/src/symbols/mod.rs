//! `cargo xtask symbols`: what the real libraries of each release export, and what changed between releases.
//!
//! | command | file |
//! |---|---|
//! | `symbols [--verbose]`: how far each library fills its table | `report` |
//! | `symbols A B`: what changed in the declarations from one release to another | `compare` |
//! | `symbols --refresh`: fetch the libraries, read their dynamic symbols and write the lists | `refresh`, `elf` |
//!
//! Everything but `--refresh` works from what is committed below `xtask/symbols`: the lists of exported functions ([`list`]) and the
//! facts about the headers ([`facts`]). [`check`] finds out whether both agree with the tables.

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

/// Runs the task.
pub fn run(root: &Path, args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => print!("{}", report::text(root, false)?),
        ["--verbose"] => print!("{}", report::text(root, true)?),
        ["--refresh"] => refresh_lists(root)?,
        [from, to] if !from.starts_with('-') && !to.starts_with('-') => {
            print!("{}", compare::run(root, from, to)?);
        }
        _ => {
            return Err(
                "`cargo xtask symbols` takes `--verbose`, `--refresh`, two releases or nothing"
                    .into(),
            );
        }
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
