//! `cargo xtask capi`: the C library in a folder, under the names that programs look for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo};

/// Where to install.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The folder that gets `lib` and `include`
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
    /// Cargo features of the library, such as nvidia
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
}

/// The name that the dynamic linker looks for, which `crates/interop-capi/build.rs` writes into the library.
const SONAME: &str = "libhipcl.so.0";

/// The headers, in their folder and in `include`.
const HEADERS: [&str; 3] = ["hipcl.h", "hipcl.hpp", "hipcl/manager_opencl.hpp"];

/// Builds the library with optimisation and copies it.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    let features = options.features.iter().flat_map(|features| ["--features", features]);
    cmd!(sh, "{cargo} build --release --package interop-capi {features...}")
        .run()
        .map_err(|_| Error::Failed("the C library does not build, see above".into()))?;
    install(
        &workspace.target().join("release"),
        &workspace.root().join("crates/interop-capi/include"),
        &options.prefix,
    )?;
    println!("installed {}", options.prefix.display());
    Ok(())
}

fn install(built: &Path, headers: &Path, prefix: &Path) -> Result<()> {
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let mut files = vec![
        (built.join("libhipcl_c.so"), lib.join(SONAME)),
        (built.join("libhipcl_c.a"), lib.join("libhipcl.a")),
    ];
    files.extend(HEADERS.map(|header| (headers.join(header), include.join(header))));
    for (from, to) in files {
        let folder = to.parent().unwrap_or(prefix);
        fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
        fs::copy(&from, &to).map_err(|error| Error::io(to.display(), error))?;
    }
    let link = lib.join("libhipcl.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).map_err(|error| Error::io(link.display(), error))?;
    }
    symlink(SONAME, &link).map_err(|error| Error::io(link.display(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_has_the_names_that_linkers_look_for_and_can_be_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let (built, headers, prefix) = (
            folder.path().join("built"),
            folder.path().join("headers"),
            folder.path().join("prefix"),
        );
        let libraries = ["libhipcl_c.so", "libhipcl_c.a"].map(|file| (built.join(file), file));
        let headers_there = HEADERS.map(|file| (headers.join(file), file));
        for (path, text) in libraries.into_iter().chain(headers_there) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for _ in 0..2 {
            install(&built, &headers, &prefix).unwrap();
            assert_eq!(fs::read(prefix.join("lib/libhipcl.so")).unwrap(), b"libhipcl_c.so");
            assert_eq!(fs::read(prefix.join("lib/libhipcl.so.0")).unwrap(), b"libhipcl_c.so");
            assert_eq!(fs::read(prefix.join("lib/libhipcl.a")).unwrap(), b"libhipcl_c.a");
            for header in HEADERS {
                assert_eq!(
                    fs::read(prefix.join("include").join(header)).unwrap(),
                    header.as_bytes()
                );
            }
        }
    }

    #[test]
    fn the_library_is_installed_by_its_soname() {
        let workspace = Workspace::discover().unwrap();
        let script = workspace.root().join("crates/interop-capi/build.rs");
        assert!(fs::read_to_string(script).unwrap().contains(SONAME));
    }
}
