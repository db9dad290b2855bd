//! `cargo xtask bench`: the cost of the layers on the host, measured by each crate's own benches on functions that do
//! nothing, or against other libraries. Figures of devices are `hipcl bench`'s.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, package_of};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Crates to measure (default: all with benches)
    #[arg(value_name = "CRATE")]
    packages: Vec<String>,
}

/// Runs the benches of every crate that has some, or of those that `packages` name.
///
/// # Errors
/// [`Error::Usage`] for a crate without benches; [`Error::Failed`] if one fails.
pub fn run(workspace: &Workspace, Options { packages }: &Options) -> Result<()> {
    let all = with_benches(workspace.root())?;
    if let Some(unknown) = packages.iter().find(|package| !all.contains(package)) {
        return Err(Error::Usage(format!(
            "{unknown:?} has no benches; use {}",
            all.join(", ")
        )));
    }
    let chosen = if packages.is_empty() { &all[..] } else { packages };
    for package in chosen {
        println!("==> {package}");
        let status = Command::new(cargo())
            .args(["bench", "--package", &package_of(package), "--bench", "*"])
            .current_dir(workspace.root())
            .status()
            .map_err(|error| Error::io("cannot start cargo", error))?;
        if !status.success() {
            return Err(Error::Failed(format!("the benches of {package} failed, see above")));
        }
    }
    Ok(())
}

/// The names of the crates with benches.
fn with_benches(root: &Path) -> Result<Vec<String>> {
    let crates = root.join("crates");
    let entries = fs::read_dir(&crates).map_err(|error| Error::io(crates.display(), error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(crates.display(), error))?;
        if entry.path().join("benches").is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_benches_are_found_and_others_refused() {
        let workspace = Workspace::discover().unwrap();
        let all = with_benches(workspace.root()).unwrap();
        assert!(all.contains(&"hip".to_owned()) && !all.contains(&"clmgr".to_owned()));
        let options = Options {
            packages: vec!["clmgr".to_owned()],
        };
        let error = run(&workspace, &options).unwrap_err();
        assert!(error.to_string().contains("hip-sys"), "{error}");
    }
}
