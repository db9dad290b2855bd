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

mod build;
mod bundle;
mod emulated;
mod plan;
mod report;
mod run;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::workspace::Workspace;
use emulated::Emulator;

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
        let found = Self::ALL
            .into_iter()
            .find(|platform| platform.name() == text);
        found.ok_or_else(|| {
            Error::Usage(format!(
                "no platform named {text:?}; use amd, nvidia or host"
            ))
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    platform: Option<Platform>,
    bundle: Option<PathBuf>,
    report: Option<PathBuf>,
    limit: Option<Duration>,
    emulated: Option<PathBuf>,
    gpu: Option<String>,
    packages: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(option) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| Error::Usage(format!("{option} wants a value")))
            };
            match option.as_str() {
                "--platform" => options.platform = Some(Platform::parse(value()?)?),
                "--bundle" => options.bundle = Some(value()?.into()),
                "--report" => options.report = Some(value()?.into()),
                "--emulated" => options.emulated = Some(value()?.into()),
                "--gpu" => options.gpu = Some(value()?.clone()),
                "--package" => options.packages.push(package(value()?)?),
                "--limit" => options.limit = Some(seconds(value()?)?),
                _ => {
                    return Err(Error::Usage(format!(
                        "`test-gpu` takes --platform amd|nvidia|host, --bundle DIR, --report DIR, --limit SECONDS, --package NAME, --emulated DIR and --gpu NAME, got {option:?}"
                    )));
                }
            }
        }
        options.check_emulated()?;
        Ok(options)
    }

    fn check_emulated(&self) -> Result<()> {
        let amd = self.platform == Some(Platform::Amd);
        match (&self.emulated, &self.gpu) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Error::Usage(
                "--gpu names what is emulated: it goes with --emulated DIR".into(),
            )),
            (Some(_), _) if amd && self.bundle.is_none() => Ok(()),
            (Some(_), _) => Err(Error::Usage(
                "--emulated goes with --platform amd, and without --bundle".into(),
            )),
        }
    }
}

fn package(name: &str) -> Result<String> {
    let mut known = plan::PACKAGES.iter().chain(&["hipcl"]);
    match known.any(|package| *package == name) {
        true => Ok(name.to_owned()),
        false => Err(Error::Usage(format!(
            "--package is one of {} or hipcl, got {name:?}",
            plan::PACKAGES.join(", ")
        ))),
    }
}

fn seconds(text: &str) -> Result<Duration> {
    match text.parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err(Error::Usage(format!(
            "--limit is what one program may take, in whole seconds from 1 on, got {text:?}"
        ))),
    }
}

/// Builds, then either packs or runs.
pub fn run(workspace: impl FnOnce() -> Result<Workspace>, args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let emulator = options
        .emulated
        .as_deref()
        .map(|folder| Emulator::at(folder, options.gpu.as_deref()))
        .transpose()?;
    let workspace = workspace()?;
    let suite = build::build(&workspace)?.only(&options.packages);
    if let Some(folder) = &options.bundle {
        return bundle::pack(&suite, folder);
    }
    let platform = options.platform.unwrap_or(Platform::Host);
    let report = options
        .report
        .unwrap_or_else(|| workspace.target().join("test-gpu"));
    finish(&suite, platform, &report, options.limit, emulator.as_ref())
}

/// The entry point for the bundle's script: runs the programs beside it.
pub fn run_bundle(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let folder = options.bundle.unwrap_or_else(|| PathBuf::from("."));
    let platform = options
        .platform
        .ok_or_else(|| Error::Usage("name the platform: --platform amd|nvidia|host".into()))?;
    let report = options.report.unwrap_or_else(|| folder.join("report"));
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
    limit: Option<Duration>,
    emulator: Option<&Emulator>,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
    let limit = limit.unwrap_or(match emulator {
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
        false => Err(Error::Failed(format!(
            "the suite did not pass on {}",
            platform.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Options> {
        Options::parse(&args.iter().map(|arg| arg.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_wrong_ones_refused_before_anything_is_built() {
        let options = parsed(&["--platform", "nvidia", "--bundle", "out"]).unwrap();
        assert_eq!(options.platform, Some(Platform::Nvidia));
        assert_eq!(options.bundle, Some("out".into()));
        let options = parsed(&["--package", "hip", "--package", "hipcl"]).unwrap();
        assert_eq!(options.packages, ["hip", "hipcl"]);
        for wrong in [
            &["--platform", "cuda"][..],
            &["--platform"],
            &["--frobnicate"],
            &["--limit", "0"],
            &["--limit", "soon"],
            &["--gpu", "gfx908"],
            &["--package", "xtask"],
            &["--emulated", "dir"],
            &["--platform", "amd", "--emulated", "dir", "--bundle", "out"],
        ] {
            assert_eq!(parsed(wrong).unwrap_err().status(), 2, "{wrong:?}");
        }
    }
}
