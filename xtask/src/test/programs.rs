//! Runs the test programs two at a time.
//!
//! `cargo test` runs one after the other, and many programs keep one core busy or wait for a compiler. An order between
//! programs is promised nowhere, and each runs as cargo would start it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{iter, thread};

use super::CRATES;
use super::summary::Summary;
use crate::error::{Error, Result};
use crate::executables::{self, Executable};
use crate::workspace::{Workspace, cargo, package_of, seconds};

const AT_ONCE: usize = 2;

/// What is to run, by the name that is printed.
struct Task {
    name: String,
    command: Command,
}

/// What a task printed, on both outputs, and how it ended.
struct Ended {
    name: String,
    output: Vec<u8>,
    status: ExitStatus,
    took: Duration,
}

/// Builds and runs every test program, and the tests in the documentation; prints and sums up what they print. Returns
/// whether all succeeded.
pub fn run(
    workspace: &Workspace,
    environment: &[(&str, OsString)],
    args: &[String],
    summary: &mut Summary,
) -> Result<bool> {
    println!("==> test programs of cargo test {}", CRATES.join(" "));
    let Some(programs) = built(workspace)? else {
        return Ok(false);
    };
    let of_programs = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    // The documentation's take long, so they come first.
    let documentation = iter::once(documentation(workspace, args));
    let mut tasks: Vec<Task> = documentation
        .chain(programs.iter().map(|program| of_program(program, of_programs)))
        .collect();
    for task in &mut tasks {
        task.command.envs(environment.iter().map(|(name, value)| (name, value)));
    }
    let mut failed = Vec::new();
    each(tasks, |ended| {
        for line in String::from_utf8_lossy(&ended.output).lines() {
            summary.add(line);
        }
        if !ended.status.success() {
            failed.push(format!("{}: {}", ended.name, ended.status));
        }
        ended.print()
    })?;
    for line in &failed {
        println!("failed: {line}");
    }
    Ok(failed.is_empty())
}

/// The test programs; `None` if they do not compile, which cargo has told.
fn built(workspace: &Workspace) -> Result<Option<Vec<Executable>>> {
    let output = Command::new(cargo())
        .arg("test")
        .args(CRATES)
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(workspace.root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let programs = executables::read(&messages).filter(|built| built.is_test);
    Ok(output.status.success().then(|| programs.collect()))
}

fn documentation(workspace: &Workspace, args: &[String]) -> Task {
    let mut command = Command::new(cargo());
    command
        .args(["test", "--doc", "--no-fail-fast"])
        .args(CRATES)
        .args(args)
        .current_dir(workspace.root());
    Task {
        name: "documentation".to_owned(),
        command,
    }
}

/// As cargo starts it: in the package's folder, with its name, and with the shared libraries of the build in reach.
fn of_program(program: &Executable, args: &[String]) -> Task {
    let package = program.crate_name();
    let mut command = Command::new(&program.path);
    command
        .args(args)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("CARGO_PKG_NAME", package_of(&package))
        .env("LD_LIBRARY_PATH", library_path(&program.path));
    Task {
        name: format!("{package}, {} {}", program.kind, program.name),
        command,
    }
}

fn library_path(program: &Path) -> OsString {
    let of_build = program.ancestors().skip(1).take(2).map(PathBuf::from);
    let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let before = std::env::split_paths(&before).filter(|folder| !folder.as_os_str().is_empty());
    // A folder whose name has a colon can't be in the list.
    std::env::join_paths(of_build.chain(before)).unwrap_or_default()
}

/// Runs the tasks, [`AT_ONCE`] at a time and in this order, and gives each to `take` when it ends.
fn each(tasks: Vec<Task>, mut take: impl FnMut(Ended) -> Result<()>) -> Result<()> {
    let tasks = Mutex::new(tasks.into_iter());
    let next = || tasks.lock().ok()?.next();
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let sender = sender.clone();
            scope.spawn(move || {
                // Nothing receives any more after an error.
                while let Some(task) = next()
                    && sender.send(task.run()).is_ok()
                {}
            });
        }
        drop(sender);
        ended.into_iter().try_for_each(|ended| take(ended?))
    })
}

impl Task {
    fn run(mut self) -> Result<Ended> {
        println!("     Running {}", self.name);
        let failed = |error| Error::io(format!("cannot run {}", self.name), error);
        let (output, status, took) = output(&mut self.command).map_err(failed)?;
        Ok(Ended {
            name: self.name,
            output,
            status,
            took,
        })
    }
}

/// Both outputs in the order in which they were written. A file takes them also from a child that lives on.
fn output(command: &mut Command) -> std::io::Result<(Vec<u8>, ExitStatus, Duration)> {
    let mut file: File = tempfile::tempfile()?;
    let started = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file.try_clone()?)
        .status()?;
    let took = started.elapsed();
    let mut output = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut output)?;
    Ok((output, status, took))
}

impl Ended {
    fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let print = |out: &mut dyn Write| {
            writeln!(out, "==> {} ({})", self.name, seconds(self.took))?;
            out.write_all(&self.output)
        };
        print(&mut out).map_err(|error| Error::io("cannot print", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Task {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Task {
            name: script.to_owned(),
            command,
        }
    }

    #[test]
    fn each_task_is_told_with_all_that_it_printed_and_how_it_ended() {
        let scripts = ["echo out; echo err >&2", "exit 3", "kill -9 $$", "echo last"];
        let mut told = Vec::new();
        each(scripts.map(shell).into(), |ended| {
            let output = String::from_utf8(ended.output).unwrap();
            told.push((ended.name, output, ended.status.code()));
            Ok(())
        })
        .unwrap();
        told.sort_by_key(|(name, ..)| scripts.iter().position(|script| script == name));
        let told: Vec<_> = told.iter().map(|(_, output, code)| (output.as_str(), *code)).collect();
        assert_eq!(
            told,
            [("out\nerr\n", Some(0)), ("", Some(3)), ("", None), ("last\n", Some(0))]
        );
    }

    #[test]
    fn two_tasks_run_at_the_same_time() {
        // A pipe is opened when both its ends are.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let made = Command::new("mkfifo")
            .args([format!("{path}/a"), format!("{path}/b")])
            .status();
        assert!(made.unwrap().success());
        let tasks = vec![
            shell(&format!(
                "timeout 60 sh -c 'echo hello > {path}/a'; timeout 60 cat {path}/b"
            )),
            shell(&format!(
                "timeout 60 cat {path}/a; timeout 60 sh -c 'echo hello > {path}/b'"
            )),
        ];
        let mut outputs = Vec::new();
        each(tasks, |ended| {
            outputs.push(ended.output);
            Ok(())
        })
        .unwrap();
        assert_eq!(outputs, [b"hello\n", b"hello\n"]);
    }

    #[test]
    fn an_error_ends_the_run_after_the_tasks_that_have_begun() {
        let mut taken = 0;
        let result = each((0..20).map(|_| shell("true")).collect(), |_| {
            taken += 1;
            Err(Error::Failed("full".into()))
        });
        assert!(result.is_err());
        assert_eq!(taken, 1);
    }
}
