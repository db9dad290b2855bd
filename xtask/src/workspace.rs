//! Where the sources and the build outputs lie.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::error::{Error, Result};

/// The workspace this program was started in.
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// Queries cargo, because a setting or the environment can move the build folder.
    pub fn discover() -> Result<Self> {
        // Set by `cargo run`; the compile-time value would name the folder xtask was built in.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest)
            .parent()
            .ok_or_else(|| Error::Failed("the xtask folder has no parent".into()))?
            .to_path_buf();
        let sh = Shell::new()?;
        sh.change_dir(&root);
        let cargo = cargo();
        let text = cmd!(sh, "{cargo} metadata --no-deps --format-version 1")
            .quiet()
            .read()?;
        let mut metadata: Value = serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("`cargo metadata` is not JSON: {error}")))?;
        name_by_crates(&mut metadata);
        let target = metadata["target_directory"]
            .as_str()
            .ok_or_else(|| Error::Failed("`cargo metadata` names no target directory".into()))?
            .into();
        Ok(Self { root, target, metadata })
    }

    /// The folder of the root `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of all build outputs; nothing is ever installed outside it.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The output of `cargo metadata --no-deps`, with packages named by [`crate_of`].
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// A shell in the root folder.
    pub fn shell(&self) -> Result<Shell> {
        let sh = Shell::new()?;
        sh.change_dir(&self.root);
        Ok(sh)
    }
}

/// What the packages' names begin with in the registry, where the crates' own names are taken or too general.
const PREFIX: &str = "hipcl-";

/// The packages whose name is their folder's.
const UNPREFIXED: [&str; 4] = ["book", "hipcl", "layout-test", "xtask"];

/// The package of a crate, for cargo. A crate is called by its folder's name everywhere else.
pub fn package_of(crate_name: &str) -> String {
    match UNPREFIXED.contains(&crate_name) {
        true => crate_name.to_owned(),
        false => format!("{PREFIX}{crate_name}"),
    }
}

/// The crate of a package.
pub fn crate_of(package: &str) -> &str {
    package.strip_prefix(PREFIX).unwrap_or(package)
}

/// Gives the packages of cargo's answer and their dependencies the names of the crates.
fn name_by_crates(metadata: &mut Value) {
    let rename = |named: &mut Value| {
        if let Some(name) = named["name"].as_str() {
            named["name"] = crate_of(name).into();
        }
    };
    for package in metadata["packages"].as_array_mut().into_iter().flatten() {
        rename(package);
        package["dependencies"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(rename);
    }
}

/// The cargo that started this program.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// Runs one named step and prints how long it took, also when it fails.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {name}");
    let started = Instant::now();
    let result = work();
    let verdict = if result.is_ok() { "done" } else { "FAILED" };
    println!("<== {name}: {verdict} in {}", seconds(started.elapsed()));
    result
}

/// A duration as a person reads it.
pub fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_secs_f64() * 10.0).round() / 10.0;
    if tenths < 60.0 {
        format!("{tenths:.1} s")
    } else {
        format!("{} min {:.0} s", duration.as_secs() / 60, tenths % 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_named_by_its_folder_and_its_package_by_the_prefix() {
        let workspace = Workspace::discover().unwrap();
        let packages = workspace.metadata()["packages"].as_array().unwrap();
        assert!(!packages.is_empty());
        for package in packages {
            let name = package["name"].as_str().unwrap();
            let manifest = Path::new(package["manifest_path"].as_str().unwrap());
            // The book's lies beside its pages.
            let folder = if name == "book" { "docs" } else { name };
            assert_eq!(manifest.parent().and_then(Path::file_name).unwrap(), folder);
            let text = std::fs::read_to_string(manifest).unwrap();
            assert!(
                text.contains(&format!("[package]\nname = \"{}\"\n", package_of(name))),
                "{name}"
            );
        }
    }
}
