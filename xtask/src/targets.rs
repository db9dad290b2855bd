//! `cargo xtask targets`: the raw layer compiles for systems that this project does not run on.

use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, package_of};

/// The crates that support it.
const CRATES: [&str; 6] = [
    "rocm-loader",
    "hip-sys",
    "rocblas-sys",
    "rocsolver-sys",
    "hsa-sys",
    "rccl-sys",
];

/// A system, and which parts of the crates it supports.
struct Target {
    triple: &'static str,
    features: &'static [&'static str],
}

const TARGETS: [Target; 4] = [
    Target {
        triple: "aarch64-unknown-linux-gnu",
        features: &[],
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        features: &[],
    },
    Target {
        triple: "aarch64-apple-darwin",
        features: &[],
    },
    // No operating system and no standard library: what is left needs `core` only.
    Target {
        triple: "x86_64-unknown-none",
        features: &["--no-default-features"],
    },
];

/// # Errors
/// [`Error::Missing`] if a target's standard library is unavailable here.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let cargo = cargo();
    let packages = CRATES
        .iter()
        .flat_map(|name| ["--package".to_owned(), package_of(name)]);
    let packages: Vec<String> = packages.collect();
    let packages = &packages;
    for Target { triple, features } in TARGETS {
        cmd!(sh, "rustup target add {triple}")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .map_err(|error| Error::Missing(format!("Rust for {triple} is not installed: {error}")))?;
        cmd!(
            sh,
            "{cargo} check --quiet --target {triple} {packages...} {features...}"
        )
        .env("RUSTFLAGS", "--deny warnings")
        .quiet()
        .run()
        .map_err(|_| Error::Failed(format!("the raw layer does not build for {triple}")))?;
        println!("{triple}: the raw layer builds without a warning");
    }
    Ok(())
}
