//! `cargo xtask msrv`: tries the oldest compiler that each crate claims to build with.

use std::collections::BTreeMap;

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::error::{Error, Result};
use crate::workspace::{Workspace, package_of};

/// Checks every crate with the version in its `rust-version`, except those that name the version this checkout is
/// pinned to: every other chore checks them.
///
/// # Errors
/// [`Error::Missing`] if a toolchain is unavailable here.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let current = cmd!(sh, "rustc --version").quiet().read()?;
    let target = workspace.target().join("msrv");
    for (version, crates) in claims(workspace.metadata()) {
        if is_version(&current, &version) {
            println!(
                "Rust {version}, the toolchain of this workspace: {} crates",
                crates.len()
            );
            continue;
        }
        install(&sh, &version)?;
        let packages: Vec<String> = crates
            .iter()
            .flat_map(|name| ["--package".to_owned(), package_of(name)])
            .collect();
        cmd!(
            sh,
            "rustup run {version} cargo check --quiet {packages...} --target-dir {target}"
        )
        // Set by the cargo that started this program, for its own toolchain.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .quiet()
        .run()
        .map_err(|_| {
            Error::Failed(format!(
                "a crate does not build with Rust {version}, which its `rust-version` states, see above"
            ))
        })?;
        println!("Rust {version} builds {}", crates.join(", "));
    }
    Ok(())
}

fn install(sh: &Shell, version: &str) -> Result<()> {
    let there = cmd!(sh, "rustup run {version} rustc --version")
        .quiet()
        .ignore_stderr()
        .ignore_stdout();
    if there.run().is_ok() {
        return Ok(());
    }
    cmd!(sh, "rustup toolchain install {version} --profile minimal")
        .quiet()
        .ignore_stderr()
        .ignore_stdout()
        .run()
        .map_err(|error| Error::Missing(format!("no Rust {version} here: {error}")))
}

/// The crates by the version they state.
fn claims(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let (Some(name), Some(version)) = (package["name"].as_str(), package["rust_version"].as_str()) else {
            continue;
        };
        claims.entry(version.to_owned()).or_default().push(name.to_owned());
    }
    claims
}

/// Whether `rustc 1.95.0 (…)` is `1.95` or `1.95.0`.
fn is_version(rustc: &str, version: &str) -> bool {
    rustc
        .split_whitespace()
        .nth(1)
        .and_then(|current| current.strip_prefix(version))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_grouped_by_the_version_they_state() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "rust_version": "1.85"},
            {"name": "b", "rust_version": "1.95"},
            {"name": "c", "rust_version": "1.85"},
            {"name": "d", "rust_version": null},
        ]});
        let claims = claims(&metadata);
        assert_eq!(claims["1.85"], ["a", "c"]);
        assert_eq!(claims["1.95"], ["b"]);
        assert_eq!(claims.len(), 2);
    }

    #[test]
    fn a_version_is_told_from_one_that_begins_with_the_same_digits() {
        assert!(is_version("rustc 1.95.0 (5980 2026-04-14)", "1.95"));
        assert!(is_version("rustc 1.95.0", "1.95.0"));
        assert!(!is_version("rustc 1.95.0", "1.9"));
        assert!(!is_version("rustc 1.95.0", "1.85"));
    }
}
