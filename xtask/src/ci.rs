//! `cargo xtask ci`: what a change has to pass, cheapest first. The tests come last, so their summary ends the output.

use xshell::cmd;

use crate::error::{Error, Result};
use crate::setup::remove_folder;
use crate::workspace::{Workspace, cargo, step};
use crate::{codegen, codegen_task, compile_time, consumers, docs, msrv, oclgrind, real_hip, targets, test, tidy};

/// What is quick to check, before every commit.
pub fn check(workspace: &Workspace) -> Result<()> {
    format(workspace)?;
    step("tidy", || tidy::run(workspace))?;
    clippy(workspace, &SELECTIONS[..1])?;
    test::libraries(workspace)
}

fn format(workspace: &Workspace) -> Result<()> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    step("format", || {
        cmd!(sh, "{cargo} fmt --all --check")
            .run()
            .map_err(|_| Error::Failed("run `cargo fmt --all`".into()))
    })
}

/// The generator and the nvidia platform lie behind features that the others do not need.
const SELECTIONS: [&[&str]; 4] = [
    &["--workspace", "--all-targets"],
    &["--package", "xtask", "--features", "codegen"],
    &["--package", "hipcl", "--features", "nvidia"],
    &["--package", "interop", "--features", "vulkan", "--all-targets"],
];

fn clippy(workspace: &Workspace, selections: &[&[&str]]) -> Result<()> {
    let (sh, cargo) = (workspace.shell()?, cargo());
    step("clippy", || {
        for selection in selections.iter().copied() {
            cmd!(sh, "{cargo} clippy {selection...} -- --deny warnings")
                .run()
                .map_err(|_| Error::Failed("clippy has complaints, see above".into()))?;
        }
        Ok(())
    })
}

/// Runs every step; the first that fails ends the run.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let cargo = cargo();
    format(workspace)?;
    step("tidy", || tidy::run(workspace))?;
    step("codegen --check", || {
        codegen_task(workspace, codegen::Options { check: true })
    })?;
    step("generator's tests", || {
        // In the profile that the generator was just built in.
        let profile = codegen::PROFILE;
        cmd!(
            sh,
            "{cargo} test --quiet {profile...} --package xtask --features codegen -- codegen symbols"
        )
        .run()
        .map_err(|_| Error::Failed("the generator's tests failed, see above".into()))
    })?;
    clippy(workspace, &SELECTIONS)?;
    step("consumers", || consumers::run(workspace, consumers::Options::default()))?;
    step("oclgrind", || if_it_can_be_had(oclgrind::run(workspace)))?;
    free(workspace, "oclgrind")?;
    step("real-hip", || if_it_can_be_had(real_hip::run(workspace)))?;
    free(workspace, "real-hip")?;
    step("targets", || if_it_can_be_had(targets::run(workspace)))?;
    step("msrv", || if_it_can_be_had(msrv::run(workspace)))?;
    free(workspace, "msrv")?;
    step("compile-time", || compile_time::run(workspace))?;
    free(workspace, "compile-time")?;
    step("docs", || docs::run(workspace))?;
    println!("==> test --opencl pocl");
    let on_pocl = test::Options {
        opencl: Some("pocl".into()),
        ..test::Options::default()
    };
    if_it_can_be_had(test::run(workspace, &on_pocl))?;
    println!("==> test");
    test::run(workspace, &test::Options::default())
}

/// Removes the folder that only the previous step used: all steps together would fill a small disk.
fn free(workspace: &Workspace, folder: &str) -> Result<()> {
    let folder = workspace.target().join(folder);
    remove_folder(&folder).map_err(|error| Error::io(folder.display(), error))
}

/// Without a network, or on another distribution, some things are missing; then the printed line is all that is
/// claimed.
fn if_it_can_be_had(result: Result<()>) -> Result<()> {
    match result {
        Err(Error::Missing(reason)) => {
            println!("not checked: {reason}");
            Ok(())
        }
        result => result,
    }
}
