//! `cargo xtask test-gpu`: the test suite on one platform, here or packed for a machine without a toolchain.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | which programs run, which cannot and why, and which skips are in order |
//! | `build.rs` | builds the programs |
//! | `bundle.rs` | packs them into a folder with a script |
//! | `run.rs` | runs them and reads what they say |
//! | `report.rs` | the report: JSON to keep, text to read |
//! | `emulated.rs` | runs programs on an emulated GPU |
//! | `c_programs.rs` | compiles the C programs for it |

mod build;
mod bundle;
mod c_programs;
mod emulated;
mod plan;
mod report;
mod run;

use std::path::{Path, PathBuf};
use std::time::Duration;

use emulated::Emulator;

use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// The task's name inside a bundle, where the runner is this program.
pub const RUNNER_TASK: &str = "gpu-run";

/// Where tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Amd,
    Nvidia,
    Host,
}

impl Platform {
    const ALL: [Self; 3] = [Self::Amd, Self::Nvidia, Self::Host];

    fn name(self) -> &'static str {
        match self {
            Self::Amd => "amd",
            Self::Nvidia => "nvidia",
            Self::Host => "host",
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|platform| platform.name() == text);
        found.ok_or_else(|| Error::Usage("not amd, nvidia or host".into()))
    }
}

/// What to run, and where.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Platform to run on (default: host)
    #[arg(long, value_parser = Platform::parse, value_name = "amd|nvidia|host")]
    platform: Option<Platform>,
    /// Pack the suite for a machine without Rust instead of running it
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Write report.json and report.txt to this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// End a program that has said nothing for so long: the longest time of a test
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Run on AMD's emulator, set up in this folder (see docs/src/testing.md)
    #[arg(long, value_name = "DIR", conflicts_with = "bundle")]
    emulated: Option<PathBuf>,
    /// GPU to emulate
    #[arg(long, value_name = "NAME", requires = "emulated")]
    gpu: Option<String>,
    /// Run only this package; may be repeated. The jobs belong to hipcl
    #[arg(long = "package", value_name = "NAME", value_parser = package)]
    packages: Vec<String>,
}

impl Options {
    /// Whether a package belongs to the run: all do if none is named.
    fn runs(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|it| it == package)
    }
}

fn package(name: &str) -> Result<String> {
    let others = ["hipcl", c_programs::PACKAGE];
    let known: Vec<&str> = plan::PACKAGES.iter().copied().chain(others).collect();
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(Error::Usage(format!("not one of {}", known.join(", ")))),
    }
}

/// Builds, then either packs or runs.
pub fn run(workspace: impl FnOnce() -> Result<Workspace>, options: &Options) -> Result<()> {
    if options.emulated.is_some() && options.platform != Some(Platform::Amd) {
        return Err(Error::Usage("--emulated needs --platform amd".into()));
    }
    let emulator = options
        .emulated
        .as_deref()
        .map(|folder| Emulator::at(folder, options.gpu.as_deref()))
        .transpose()?;
    let workspace = workspace()?;
    let mut suite = build::build(&workspace)?;
    if let Some(emulator) = &emulator
        && options.runs(c_programs::PACKAGE)
    {
        let package = workspace.root().join("crates").join(c_programs::PACKAGE);
        suite
            .programs
            .extend(c_programs::compile(emulator, &package.join("tests/c"))?);
    }
    let suite = suite.only(&options.packages);
    if let Some(folder) = &options.bundle {
        return bundle::pack(&suite, folder);
    }
    let platform = options.platform.unwrap_or(Platform::Host);
    let by_default = || workspace.target().join("test-gpu");
    let report = options.report.clone().unwrap_or_else(by_default);
    finish(&suite, platform, &report, options.limit, emulator.as_ref())
}

/// The entry point for the bundle's script: runs the programs beside it.
pub fn run_bundle(options: &Options) -> Result<()> {
    let folder = options.bundle.clone().unwrap_or_else(|| PathBuf::from("."));
    let platform = options
        .platform
        .ok_or_else(|| Error::Usage("no platform; use --platform amd|nvidia|host".into()))?;
    let by_default = || folder.join("report");
    let report = options.report.clone().unwrap_or_else(by_default);
    finish(
        &bundle::unpacked(&folder)?.only(&options.packages),
        platform,
        &report,
        options.limit,
        None,
    )
}

fn finish(
    suite: &build::Suite,
    platform: Platform,
    folder: &Path,
    limit: Option<u64>,
    emulator: Option<&Emulator>,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
    let limit = limit.map(Duration::from_secs).unwrap_or(match emulator {
        None => run::LIMIT,
        Some(_) => emulated::LIMIT,
    });
    let results = run::run(suite, platform, folder, limit, emulator)?;
    let report = report::Report::new(platform, results);
    report.write(folder)?;
    print!("{}", report.text());
    println!("report: {}", folder.join("report.json").display());
    match report.is_green() {
        true => Ok(()),
        false => Err(Error::Failed(format!("the suite did not pass on {}", platform.name()))),
    }
}
