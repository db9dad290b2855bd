//! `cargo xtask consumers`: each published crate in a third-party program.
//!
//! The programs lie in `ci/consumers`, outside the workspace, with one dependency each. A crate that compiles only
//! because another member of the workspace turns a feature on, or that drags in what a layer must not have, shows here.

mod linked;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, crate_of};

/// The list of a consumer's crates.
const LIST: &str = "crates.txt";

/// Whether to write.
#[derive(Debug, Default, Clone, Copy, clap::Args)]
pub struct Options {
    /// Update the recorded dependencies of each consumer
    #[arg(long)]
    bless: bool,
}

/// `--bless` writes the lists instead of comparing with them.
pub fn run(workspace: &Workspace, Options { bless }: Options) -> Result<()> {
    let folder = workspace.root().join("ci/consumers");
    let consumers = consumers(&folder)?;
    // The versions that the workspace uses, not the newest of the day; cargo drops the entries that are not needed.
    let (lock, copy) = (workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"));
    fs::copy(&lock, &copy).map_err(|error| Error::io(copy.display(), error))?;
    let sh = Shell::new()?;
    sh.change_dir(&folder);

    let mut problems = Vec::new();
    for name in &consumers {
        let crates = crates(&sh, name)?;
        let list = folder.join(name).join(LIST);
        if bless {
            fs::write(&list, text(&crates)).map_err(|error| Error::io(list.display(), error))?;
        }
        let allowed = fs::read_to_string(&list).map_err(|error| Error::io(list.display(), error))?;
        problems.extend(compare(name, &crates, &allowed));
    }
    if !problems.is_empty() {
        return Err(Error::Failed(format!(
            "the dependencies of a consumer changed:\n  {}\nif this is intended, run `cargo xtask consumers --bless`",
            problems.join("\n  ")
        )));
    }

    let (cargo, target) = (cargo(), workspace.target());
    for name in consumers.iter().filter(|name| *name != linked::NAME) {
        // One by one: in one build all would share the features that any of them asks for.
        cmd!(
            sh,
            "{cargo} check --quiet --package consumer-{name} --target-dir {target}"
        )
        .quiet()
        .run()
        .map_err(|_| Error::Failed(format!("ci/consumers/{name} does not build, see above")))?;
        println!("{name}: builds on its own");
    }
    linked::run(&sh, target)
}

/// The folders that hold a package.
fn consumers(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io(folder.display(), error))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path: PathBuf = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.to_owned();
            path.join("Cargo.toml").exists().then_some(name)
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Everything that comes with the consumer's one dependency, on the supported system.
fn crates(sh: &Shell, name: &str) -> Result<BTreeSet<String>> {
    let cargo = cargo();
    let output = cmd!(
        sh,
        "{cargo} tree --package consumer-{name} --edges normal,build --target x86_64-unknown-linux-gnu --prefix none"
    )
    .quiet()
    .ignore_stderr()
    .read()
    .map_err(|_| Error::Failed(format!("`cargo tree` failed for ci/consumers/{name}")))?;
    let mut crates: BTreeSet<String> = output
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|package| crate_of(package).to_owned())
        .collect();
    crates.remove(&format!("consumer-{name}"));
    Ok(crates)
}

fn text(crates: &BTreeSet<String>) -> String {
    crates.iter().map(|name| format!("{name}\n")).collect()
}

fn compare(consumer: &str, crates: &BTreeSet<String>, allowed: &str) -> Vec<String> {
    let allowed: BTreeSet<String> = allowed.lines().map(str::to_owned).collect();
    let more = crates.difference(&allowed);
    let fewer = allowed.difference(crates);
    more.map(|name| format!("{consumer}: {name} was added"))
        .chain(fewer.map(|name| format!("{consumer}: {name} was removed")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/consumers")
    }

    fn list(consumer: &str) -> BTreeSet<String> {
        let path = folder().join(consumer).join(LIST);
        let text = fs::read_to_string(&path).expect("each consumer has its list");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_crate_that_comes_in_or_goes_is_named() {
        let crates = ["a", "c"].map(str::to_owned).into();
        assert_eq!(compare("x", &crates, "a\nb\n"), ["x: c was added", "x: b was removed"]);
        assert!(compare("x", &crates, "a\nc\n").is_empty());
        assert!(compare("x", &crates, &text(&crates)).is_empty());
    }

    #[test]
    fn every_published_crate_has_a_consumer() {
        let names = consumers(&folder()).expect("the folder of the consumers");
        for name in [
            "hip-sys",
            "rocblas-sys",
            "rocsolver-sys",
            "rccl-sys",
            "hsa-sys",
            "hip",
            "rocblas",
            "clmgr",
            "clmgr-fft",
            "platform",
            "interop",
            "hip-host",
            "hip-host-blas",
            "hip-host-rccl",
            "rccl",
        ] {
            assert!(names.contains(&name.to_owned()), "{name}");
            assert!(list(name).contains(name), "{name} does not use {name}");
        }
    }

    #[test]
    fn no_consumer_gets_the_other_side_or_a_parser_of_c() {
        for name in consumers(&folder()).expect("the folder of the consumers") {
            let crates = list(&name);
            for never in ["bindgen", "clang-sys", "opencl3", "cl3"] {
                assert!(!crates.contains(never), "{name} gets {never}");
            }
            let both = crates.contains("hip-sys") && crates.contains("opencl-sys");
            assert_eq!(both, name == "interop", "{name} gets both sides");
        }
        assert!(!list("platform-amd").contains("hip-host"));
        // What works without an operating system brings nothing from outside.
        assert!(
            list("hip-sys-core")
                .iter()
                .all(|name| ["hip-sys", "rocm-loader"].contains(&name.as_str()))
        );
    }
}
