//! `cargo xtask tidy`: the project's own rules as code.

mod arrows;
mod knots;
mod platforms;
mod source;
mod text;
mod unsafe_code;
mod untested;
mod variables;

pub use text::tracked_files;

use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// Reports every violation at once.
pub fn run(workspace: &Workspace) -> Result<()> {
    let mut problems = arrows::violations(&arrows::Graph::of(workspace.metadata()));
    problems.extend(knots::violations(workspace.metadata())?);
    problems.extend(platforms::violations(workspace.metadata())?);
    problems.extend(unsafe_code::violations(workspace.root(), workspace.metadata())?);
    problems.extend(untested::violations(workspace.metadata()));
    match text::tracked_files(workspace)? {
        Some(files) => {
            problems.extend(text::violations(workspace.root(), &files));
            problems.extend(variables::violations(workspace.root(), &files));
        }
        None => println!("tidy: not a git checkout, so the text of files is not checked"),
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{} violations of the project's rules:\n  {}",
        problems.len(),
        problems.join("\n  ")
    )))
}
