//! The headers of each release, unpacked into a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;
use super::archive::Archive;
use super::releases::Release;

/// Where [`unpack`] puts the `usr/include` of a release.
#[cfg(feature = "codegen")]
pub fn folder(work: &Path, release: &Release) -> PathBuf {
    tree(work, release).join("usr/include")
}

/// Fetches the release's header packages, unless they are here already, and unpacks them below `work`.
pub fn unpack(shell: &Shell, work: &Path, release: &Release) -> Result<()> {
    let files = Archive::new(shell, work, release.suite).fetch(release.headers)?;
    let tree = tree(work, release);
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fs::create_dir_all(&tree)?;
    for file in files {
        cmd!(shell, "dpkg-deb -x {file} {tree}").quiet().run()?;
    }
    Ok(())
}

fn tree(work: &Path, release: &Release) -> PathBuf {
    work.join("headers").join(release.name)
}
