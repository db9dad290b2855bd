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
        let metadata: Value = serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("`cargo metadata` is not JSON: {error}")))?;
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

    /// The output of `cargo metadata --no-deps`.
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
