//! `cargo xtask package`: the packages as a registry gets them, each built alone.
//!
//! | module | what it does |
//! |---|---|
//! | `manifest` | what a registry asks of a manifest, and the programs in the READMEs |

mod manifest;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use xshell::cmd;

use crate::error::{Error, Result};
use crate::setup::remove_folder;
use crate::workspace::{Workspace, cargo, package_of};

/// Files of the workspace that are in each package, word for word.
const LEGAL: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE"];

/// One package that is published.
pub struct Package {
    crate_name: String,
    /// Name and version, as its file and the folder in it are called.
    stem: String,
}

/// Packs every crate that is published, and builds each from its `.crate` file: unpacked beside the others in a folder
/// outside of the workspace, so that neither its files nor cargo's settings in it help.
///
/// # Errors
/// [`Error::Failed`] with everything that a package lacks, or what does not build without the workspace.
pub fn run(workspace: &Workspace) -> Result<()> {
    let packages = check(workspace)?;
    let folder = tempfile::tempdir().map_err(|error| Error::io("a temporary folder", error))?;
    for package in &packages {
        unpack(workspace, package, folder.path())?;
    }
    for package in &packages {
        build(workspace, package, &packages, folder.path())?;
    }
    println!("{} packages build, each from its .crate file alone", packages.len());
    Ok(())
}

/// What takes seconds: the manifests, and what the packages hold.
pub fn check(workspace: &Workspace) -> Result<Vec<Package>> {
    let published = published(workspace.metadata());
    problems(manifest::violations(workspace, &published))?;
    let packages: Vec<Package> = published.into_iter().map(Package::of).collect();
    pack(workspace, &packages)?;
    let folder = folder(workspace);
    remove_folder(&folder).map_err(|error| Error::io(folder.display(), error))?;
    fs::create_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;
    let mut found = Vec::new();
    for package in &packages {
        unpack(workspace, package, &folder)?;
        found.extend(copies(workspace.root(), &folder.join(&package.stem))?);
    }
    problems(found)?;
    println!("{} packages, each with its licences and the notice", packages.len());
    Ok(packages)
}

/// Where the packages are unpacked to look at their files.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("package-alone")
}

/// The packages that cargo would publish.
fn published(metadata: &Value) -> Vec<&Value> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.filter(|package| package["publish"].is_null()).collect()
}

fn problems(found: Vec<String>) -> Result<()> {
    match found.is_empty() {
        true => Ok(()),
        false => Err(Error::Failed(found.join("\n"))),
    }
}

impl Package {
    fn of(metadata: &Value) -> Self {
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        let crate_name = text("name").to_owned();
        let stem = format!("{}-{}", package_of(&crate_name), text("version"));
        Self { crate_name, stem }
    }
}

/// Without a network: the packages depend on each other, and no registry has them yet.
fn pack(workspace: &Workspace, packages: &[Package]) -> Result<()> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    let packages = packages
        .iter()
        .flat_map(|package| ["--package".to_owned(), package_of(&package.crate_name)]);
    let output = cmd!(sh, "{cargo} package {packages...} --no-verify --allow-dirty --offline")
        .quiet()
        .ignore_status()
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // That tests and benches are left out is meant.
    let warned = said
        .lines()
        .filter(|line| line.starts_with("warning: ") && !line.contains("is not included"));
    let warned: Vec<&str> = warned.collect();
    match output.status.success() && warned.is_empty() {
        true => Ok(()),
        false if warned.is_empty() => Err(Error::Failed(format!("`cargo package` failed:\n{said}"))),
        false => Err(Error::Failed(format!("`cargo package` warns:\n{}", warned.join("\n")))),
    }
}

fn unpack(workspace: &Workspace, package: &Package, folder: &Path) -> Result<()> {
    let file = workspace
        .target()
        .join("package")
        .join(format!("{}.crate", package.stem));
    let sh = workspace.shell()?;
    cmd!(sh, "tar --extract --gzip --file {file} --directory {folder}")
        .quiet()
        .run()?;
    Ok(())
}

/// What differs from the workspace's licences and notice.
fn copies(root: &Path, unpacked: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in LEGAL {
        let original = root.join(name);
        let original = fs::read(&original).map_err(|error| Error::io(original.display(), error))?;
        if fs::read(unpacked.join(name)).ok() != Some(original) {
            found.push(format!("{}: no {name}, or another text", unpacked.display()));
        }
    }
    Ok(found)
}

/// Compiles everything in the package, with nothing of the workspace but its lock file's versions.
fn build(workspace: &Workspace, package: &Package, all: &[Package], folder: &Path) -> Result<()> {
    let alone = folder.join(&package.stem);
    let manifest = alone.join("Cargo.toml");
    let io = |error| Error::io(manifest.display(), error);
    let text = fs::read_to_string(&manifest).map_err(io)?;
    fs::write(&manifest, text + &stand_in_for_the_registry(all)).map_err(io)?;
    let lock = alone.join("Cargo.lock");
    fs::copy(workspace.root().join("Cargo.lock"), &lock).map_err(|error| Error::io(lock.display(), error))?;
    let (sh, cargo, target) = (workspace.shell()?, cargo(), target(workspace));
    sh.change_dir(&alone);
    cmd!(
        sh,
        "{cargo} check --quiet --offline --all-targets --target-dir {target}"
    )
    .quiet()
    .run()
    .map_err(|_| {
        let name = package_of(&package.crate_name);
        Error::Failed(format!("{name} does not build from its package alone, see above"))
    })?;
    println!("{}: builds alone", package.stem);
    Ok(())
}

/// One for all packages, so that what they share is compiled once.
fn target(workspace: &Workspace) -> PathBuf {
    workspace.target().join("package-build")
}

/// The end of an unpacked manifest: it is no member of the workspace around it, and finds the other packages.
fn stand_in_for_the_registry(all: &[Package]) -> String {
    let patches = all.iter().map(|package| {
        let name = package_of(&package.crate_name);
        format!("{name} = {{ path = \"../{}\" }}\n", package.stem)
    });
    format!("\n[workspace]\n\n[patch.crates-io]\n{}", patches.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_every_crate_and_nothing_of_the_project() {
        let workspace = Workspace::discover().unwrap();
        let names = published(workspace.metadata());
        let names: Vec<&str> = names.iter().filter_map(|package| package["name"].as_str()).collect();
        let folders = fs::read_dir(workspace.root().join("crates")).unwrap();
        assert_eq!(names.len(), folders.count());
        assert!(!names.contains(&"xtask") && !names.contains(&"layout-test"));
    }

    #[test]
    fn a_licence_that_is_missing_or_changed_is_named() {
        let (root, unpacked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in LEGAL {
            fs::write(root.path().join(name), name).unwrap();
            fs::write(unpacked.path().join(name), name).unwrap();
        }
        assert_eq!(copies(root.path(), unpacked.path()).unwrap(), Vec::<String>::new());
        fs::write(unpacked.path().join("NOTICE"), "another").unwrap();
        fs::remove_file(unpacked.path().join("LICENSE-MIT")).unwrap();
        let found = copies(root.path(), unpacked.path()).unwrap();
        assert_eq!(found.len(), 2);
        assert!(
            found[0].contains("LICENSE-MIT") && found[1].contains("NOTICE"),
            "{found:?}"
        );
    }

    #[test]
    fn an_unpacked_package_finds_the_others_beside_it() {
        let metadata = serde_json::json!({"name": "hip", "version": "1.2.3"});
        let text = stand_in_for_the_registry(&[Package::of(&metadata)]);
        assert!(
            text.ends_with("[patch.crates-io]\nhipcl-hip = { path = \"../hipcl-hip-1.2.3\" }\n"),
            "{text}"
        );
    }
}
