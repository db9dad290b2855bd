//! The headers of each release, unpacked into a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::archive::Archive;
use super::releases::{Origin, Package, Release};
use super::{Result, wheels};

/// As the packages have it.
const INCLUDE: &str = "usr/include";

/// Where [`unpack`] puts the `usr/include` of a release.
#[cfg(feature = "codegen")]
pub fn folder(work: &Path, release: &Release) -> PathBuf {
    tree(work, release).join(INCLUDE)
}

/// Fetches the release's header packages, unless they are here already, and unpacks them below `work`.
pub fn unpack(shell: &Shell, work: &Path, release: &Release) -> Result<()> {
    let tree = tree(work, release);
    let empty_tree = || -> Result<()> {
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        Ok(fs::create_dir_all(&tree)?)
    };
    match release.origin {
        Origin::Debian(suite) => {
            let files = Archive::new(shell, work, suite).fetch(release.headers)?;
            empty_tree()?;
            for file in files {
                cmd!(shell, "dpkg-deb -x {file} {tree}").quiet().run()?;
            }
        }
        Origin::Python { hip, imports } => {
            let packages: Vec<&Package> = release.headers.iter().chain(imports).collect();
            empty_tree()?;
            wheels::unpack(shell, work, &packages, hip, &tree.join(INCLUDE))?;
        }
    }
    Ok(())
}

fn tree(work: &Path, release: &Release) -> PathBuf {
    work.join("headers").join(release.name)
}
