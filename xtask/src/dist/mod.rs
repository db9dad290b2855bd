//! `cargo xtask dist`: one archive for users without Rust, tried as they would.
//!
//! | module | what it does |
//! |---|---|
//! | `archive` | packs a folder so that the same files give the same bytes |
//! | `notices` | collects the licences of the crates that the binaries contain |
//! | `paths` | keeps paths of this machine out of the binaries |
//! | `trial` | unpacks the archive, builds the examples with it, and runs them |

mod archive;
mod notices;
pub mod paths;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::capi;
use crate::dist::paths::Paths;
use crate::error::{Error, Result};
use crate::setup::{self, remove_folder};
use crate::workspace::{Workspace, step};

/// What to pack.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The folder that gets the archive and its checksum
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Cargo features of the library and the command, such as nvidia
    #[arg(long, value_name = "FEATURES")]
    features: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            out: OUT.into(),
            features: None,
        }
    }
}

const OUT: &str = "target/dist";

/// The processor and system that the archive is for.
const TARGET: &str = "x86_64-linux";

/// The binaries in the archive.
const BINARIES: [&str; 4] = ["bin/hipcl", "lib/libhipcl.so.0", "lib/libhipcl.a", "lib/libhip_host.so"];

/// Files of the workspace that go into the archive as they are.
const FILES: [(&str, &str); 7] = [
    ("crates/interop-capi/package/README.txt", "README.txt"),
    ("LICENSE-MIT", "share/doc/hipcl/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/hipcl/LICENSE-APACHE"),
    ("NOTICE", "share/doc/hipcl/NOTICE"),
    ("examples/CMakeLists.txt", "share/hipcl/examples/CMakeLists.txt"),
    ("examples/c/covariance.c", "share/hipcl/examples/c/covariance.c"),
    ("examples/cpp/covariance.cpp", "share/hipcl/examples/cpp/covariance.cpp"),
];

/// Builds, packs, and tries the archive.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::Missing(format!("the archive is built on {TARGET} only")));
    }
    let name = format!("hipcl-{}-{TARGET}", capi::version(workspace)?);
    let out = workspace.root().join(&options.out);
    let stage = workspace.target().join("dist-stage");
    let paths = Paths::of(workspace)?;
    step("build", || {
        for (package, features) in roots(options.features.as_deref()) {
            capi::build(workspace, &[package], features, Some(&paths))?;
        }
        Ok(())
    })?;
    let archive = step("pack", || {
        remove_folder(&stage).map_err(|error| Error::io(stage.display(), error))?;
        fill(workspace, options, &stage.join(&name))?;
        for binary in BINARIES {
            paths.refuse(&stage.join(&name).join(binary))?;
        }
        fs::create_dir_all(&out).map_err(|error| Error::io(out.display(), error))?;
        archive::pack(&stage, &name, &out, time(workspace))
    })?;
    remove_folder(&stage).map_err(|error| Error::io(stage.display(), error))?;
    // The examples need an OpenCL implementation, which the archive does not have.
    setup::run(workspace)?;
    step("try", || trial::run(workspace, &archive, &name))?;
    let bytes = fs::metadata(&archive)
        .map_err(|error| Error::io(archive.display(), error))?
        .len();
    println!("{}: {:.1} MiB", archive.display(), bytes as f64 / f64::from(1 << 20));
    Ok(())
}

/// What is built, with the features of each: the software device has none.
fn roots(features: Option<&str>) -> [notices::Root<'_>; 3] {
    [("interop-capi", features), ("hipcl", features), ("hip-host-capi", None)]
}

/// Everything that the archive holds.
fn fill(workspace: &Workspace, options: &Options, prefix: &Path) -> Result<()> {
    capi::install(workspace, prefix)?;
    let built = workspace.target().join("release");
    copy(&built.join("hipcl"), &prefix.join("bin/hipcl"))?;
    copy(&built.join("libhip_host.so"), &prefix.join("lib/libhip_host.so"))?;
    for (from, to) in FILES {
        copy(&workspace.root().join(from), &prefix.join(to))?;
    }
    let doc = prefix.join("share/doc/hipcl");
    let notices = doc.join("THIRD-PARTY.txt");
    fs::write(&notices, notices::text(workspace, &roots(options.features.as_deref()))?)
        .map_err(|error| Error::io(notices.display(), error))?;
    let library = paths::sysroot()?.join("share/doc/rust/COPYRIGHT-library.html");
    if !library.is_file() {
        return Err(Error::Missing(format!(
            "{}: the notices of Rust's standard library are missing; install Rust 1.84 or later by rustup",
            library.display()
        )));
    }
    copy(&library, &doc.join("RUST-LIBRARY.html"))?;
    let man = prefix.join("share/man/man1");
    fs::create_dir_all(&man).map_err(|error| Error::io(man.display(), error))?;
    let (sh, hipcl) = (workspace.shell()?, built.join("hipcl"));
    cmd!(sh, "{hipcl} man {man}").quiet().run()?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|error| Error::io(format!("{} to {}", from.display(), to.display()), error))
}

/// The time of every file in the archive, in seconds since 1970: what `SOURCE_DATE_EPOCH` says, else the commit's.
fn time(workspace: &Workspace) -> u64 {
    let named = std::env::var("SOURCE_DATE_EPOCH").ok();
    let committed = || {
        let sh = workspace.shell().ok()?;
        cmd!(sh, "git log -1 --format=%ct").quiet().ignore_stderr().read().ok()
    };
    named
        .or_else(committed)
        .and_then(|seconds| seconds.trim().parse().ok())
        .unwrap_or(0)
}
