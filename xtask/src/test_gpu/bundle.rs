//! The bundle: a folder that holds all it takes to run the suite on a machine without Rust.
//!
//! The programs share most of their bytes, so they travel as one `programs.tar.xz`; `run.sh` unpacks it and starts the
//! runner, which is this very program. The machine needs a shell, `tar` and `xz`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::{Program, Suite};
use super::{RUNNER_TASK, plan};
use crate::error::{Error, Result};
use crate::workspace::step;

/// The size limit of a bundle.
const LIMIT_BYTES: u64 = 64 << 20;

const SCRIPT: &str = r#"#!/bin/sh
# Runs the suite on this machine: sh run.sh --platform amd|nvidia|host [--report DIR]
set -eu
cd "$(dirname "$0")"
[ -d bin ] || tar -xJf programs.tar.xz
exec ./bin/runner RUNNER_TASK --bundle . "$@"
"#;

const COMMAND: &str = "hipcl";
const RUNNER: &str = "runner";
/// Between a package and its program in a file's name; neither contains it.
const SEPARATOR: &str = "--";

/// Writes the bundle to `folder`, which must not hold another's files.
pub fn pack(suite: &Suite, folder: &Path) -> Result<()> {
    step("pack the bundle", || {
        let programs = staged(suite, folder)?;
        let archive = folder.join("programs.tar.xz");
        // The dictionary spans all programs: what they share is stored once.
        let packed = Command::new("tar")
            .args([
                "--create",
                "--use-compress-program",
                "xz --lzma2=preset=1,dict=256MiB",
                "--file",
            ])
            .arg(absolute(&archive)?)
            .args(["bin", "examples"])
            .current_dir(&programs)
            .status()
            .map_err(|error| Error::io("cannot start tar", error))?;
        if !packed.success() {
            return Err(Error::Failed("tar could not pack the programs, see above".into()));
        }
        fs::remove_dir_all(&programs).map_err(|error| Error::io(programs.display(), error))?;
        let script = folder.join("run.sh");
        write_executable(&script, SCRIPT.replace("RUNNER_TASK", RUNNER_TASK).as_bytes())?;
        let bytes = fs::metadata(&archive)
            .map_err(|error| Error::io(archive.display(), error))?
            .len();
        println!("{}: {:.1} MiB", folder.display(), bytes as f64 / f64::from(1 << 20));
        if bytes > LIMIT_BYTES {
            return Err(Error::Failed(format!(
                "the bundle has {bytes} bytes, but at most {LIMIT_BYTES} are allowed"
            )));
        }
        Ok(())
    })
}

/// Copies the programs for a card into a separate folder, without symbols.
fn staged(suite: &Suite, folder: &Path) -> Result<PathBuf> {
    let stage = folder.join("stage");
    let (bin, examples) = (stage.join("bin"), stage.join("examples"));
    for folder in [&bin, &examples] {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
    }
    let useful = |program: &&Program| plan::runs_on_a_card(&program.package, &program.name);
    for program in suite.programs.iter().filter(useful) {
        let name = format!("{}{SEPARATOR}{}", program.package, program.name);
        copy_stripped(&program.path, &bin.join(name))?;
    }
    for (name, example) in &suite.examples {
        copy_stripped(example, &examples.join(name))?;
    }
    copy_stripped(&suite.command, &bin.join(COMMAND))?;
    let own = std::env::current_exe().map_err(|error| Error::io("the running program", error))?;
    copy_stripped(&own, &bin.join(RUNNER))?;
    Ok(stage)
}

fn copy_stripped(from: &Path, to: &Path) -> Result<()> {
    let stripped = Command::new("strip").arg("-o").arg(to).arg(from).status();
    // Without `strip` the bundle is larger, not wrong.
    if stripped.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|error| Error::io(from.display(), error))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io(path.display(), error))
}

fn write_executable(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(|error| Error::io(path.display(), error))
}

/// The programs of an unpacked bundle.
pub fn unpacked(folder: &Path) -> Result<Suite> {
    let bin = absolute(&folder.join("bin"))?;
    let mut programs = Vec::new();
    for (name, path) in files(&bin)? {
        if let Some((package, name)) = name.split_once(SEPARATOR) {
            programs.push(Program {
                package: package.to_owned(),
                name: name.to_owned(),
                path,
            });
        }
    }
    programs.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    if programs.is_empty() {
        return Err(Error::Missing(format!(
            "{} contains no test program; start run.sh, which unpacks them",
            bin.display()
        )));
    }
    Ok(Suite {
        programs,
        examples: files(&absolute(&folder.join("examples"))?)?,
        command: bin.join(COMMAND),
        no_jobs: false,
        named: Vec::new(),
    })
}

/// The files of a folder, each with its name.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io(folder.display(), error))?;
    entries
        .map(|entry| {
            let path = entry.map_err(|error| Error::io(folder.display(), error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_again_by_package_and_name() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["hip--memory", "clmgr--memory_pool", "hipcl", "runner"] {
            fs::write(bin.join(name), "").unwrap();
        }
        let examples = folder.path().join("examples");
        fs::create_dir(&examples).unwrap();
        fs::write(examples.join("08_grades"), "").unwrap();
        let suite = unpacked(folder.path()).unwrap();
        assert_eq!(suite.examples, [("08_grades".to_owned(), examples.join("08_grades"))]);
        let names: Vec<_> = suite
            .programs
            .iter()
            .map(|p| (p.package.as_str(), p.name.as_str()))
            .collect();
        assert_eq!(names, [("clmgr", "memory_pool"), ("hip", "memory")]);
        assert!(suite.command.ends_with("bin/hipcl"));
    }

    #[test]
    fn an_empty_folder_is_no_bundle() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        assert_eq!(unpacked(folder.path()).unwrap_err().status(), 2);
    }
}
