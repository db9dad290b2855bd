//! `cargo xtask test`: set-up, every test of the workspace, and one line that sums them up.

mod programs;
mod summary;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use summary::Summary;

use crate::error::{Error, Result};
use crate::setup::{self, SoftwareVulkan};
use crate::workspace::{Workspace, cargo};

/// A test that cannot run here appends `<test>: <reason>` to the file that this variable names.
const SKIP_LOG: &str = "HIPCL_SKIP_LOG";

/// Every test but this program's own, with what is off by default and tested anyway.
pub const CRATES: [&str; 5] = [
    "--workspace",
    "--exclude",
    "xtask",
    "--features",
    "hipcl-interop/vulkan",
];

/// This program's own tests, apart: together with the others it would be built with more features than it was started
/// with, and so would all that it downloads files with.
const XTASK: [&str; 2] = ["--package", "xtask"];

/// What to run, on which runtime.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Install this OpenCL runtime and use it in addition to the one that programs find; must come first
    #[arg(long, value_name = "RUNTIME", value_parser = setup::RUNTIMES)]
    pub opencl: Option<String>,
    /// Arguments for `cargo test`; any argument leaves out the tests of this program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// Runs `cargo test` on the OpenCL runtime that programs find, or on the named one.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let driver = match &options.opencl {
        Some(name) => Some(setup::runtime(workspace, name)?),
        None => setup::run(workspace).map(|()| None)?,
    };
    run_on(workspace, driver.as_deref(), &options.args)
}

/// The tests inside the libraries, and this program's own.
pub fn libraries(workspace: &Workspace) -> Result<()> {
    setup::run(workspace)?;
    let libraries = Command::new(cargo())
        .args(["test", "--quiet", "--lib"])
        .args(CRATES)
        .current_dir(workspace.root())
        .status();
    let own = Command::new(cargo())
        .args(["test", "--quiet"])
        .args(XTASK)
        .current_dir(workspace.root())
        .status();
    for status in [libraries, own] {
        let status = status.map_err(|error| Error::io("cannot start cargo", error))?;
        if !status.success() {
            return Err(Error::Failed("the tests did not pass, see above".into()));
        }
    }
    Ok(())
}

/// The tests that compare a table with what it tells of, and write it if this variable is set.
const WRITE_TABLES: &str = "HIPCL_WRITE_TABLES";
const TABLE_TESTS: [&str; 10] = [
    "--test",
    "functions",
    "--test",
    "coverage",
    "--test",
    "routes",
    "--",
    "the_table_of_functions_is_what_the_sources_say",
    "the_book_lists_what_is_built",
    "the_books_table_of_routes_is_what_the_routes_do",
];

/// Writes every table that a test checks.
pub fn tables(workspace: &Workspace) -> Result<()> {
    setup::run(workspace)?;
    let status = Command::new(cargo())
        .args(["test", "--quiet"])
        .args(CRATES)
        .args(TABLE_TESTS)
        .env(WRITE_TABLES, "1")
        .current_dir(workspace.root())
        .status()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::Failed("the tables could not be written, see above".into())),
    }
}

/// With only this OpenCL library, if one is named.
fn run_on(workspace: &Workspace, opencl: Option<&Path>, args: &[String]) -> Result<()> {
    let log = workspace.target().join("skipped-tests.log");
    fs::write(&log, "").map_err(|error| Error::io(log.display(), error))?;

    let environment = environment(workspace, opencl, &log);
    let (mut summary, mut succeeded) = (Summary::default(), true);
    // Cargo's own options choose among the programs, which is cargo's business.
    let chooses = args.first().is_some_and(|first| first != "--");
    if chooses {
        succeeded &= cargo_test(workspace, &environment, &CRATES, args, &mut summary)?;
    } else {
        succeeded &= programs::run(workspace, &environment, args, &mut summary)?;
    }
    if args.is_empty() {
        succeeded &= cargo_test(workspace, &environment, &XTASK, args, &mut summary)?;
    }
    let skipped = skipped_tests(&log)?;
    if !skipped.is_empty() {
        println!("\nskipped:");
        for line in &skipped {
            println!("  {line}");
        }
    }
    summary.leave_out(skipped.len() as u64);
    println!();
    if summary.programs == 0 {
        println!("no test program ran");
    } else if !succeeded && summary.failed == 0 {
        // A crash or a program that did not compile reports no failed test, and must not read as a success.
        println!("a test program crashed or did not compile, see above");
        summary.failed = 1;
    }
    println!("{}", summary.line());
    match succeeded && summary.failed == 0 && summary.passed > 0 {
        true => Ok(()),
        false => Err(Error::Failed("the tests did not pass".into())),
    }
}

/// Variables for the tests, with the file in which they write what they skip.
fn environment(workspace: &Workspace, opencl: Option<&Path>, log: &Path) -> Vec<(&'static str, OsString)> {
    let vulkan = SoftwareVulkan::find(workspace);
    let clfft = setup::clfft::find(workspace);
    let vulkan = vulkan.iter().flat_map(SoftwareVulkan::variables);
    let found = vulkan.chain(clfft.as_deref().map(|library| (setup::clfft::VARIABLE, library)));
    // what the user names comes first
    let found = found.filter(|(name, _)| std::env::var_os(name).is_none());
    let opencl = opencl.map(|library| ("HIPCL_OPENCL", library));
    found
        .chain(opencl)
        .chain([(SKIP_LOG, log)])
        .map(|(name, value)| (name, value.into()))
        .collect()
}

/// Streams cargo's output and adds the summaries in it; returns whether cargo succeeded.
fn cargo_test(
    workspace: &Workspace,
    environment: &[(&str, OsString)],
    selection: &[&str],
    args: &[String],
    summary: &mut Summary,
) -> Result<bool> {
    println!("==> cargo test {}", selection.join(" "));
    let mut child = Command::new(cargo())
        .args(["test", "--no-fail-fast"])
        .args(selection)
        .args(args)
        .current_dir(workspace.root())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    if let Some(stdout) = child.stdout.take() {
        let mut out = std::io::stdout().lock();
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.map_err(|error| Error::io("cannot read cargo's output", error))?;
            let line = String::from_utf8_lossy(&line);
            summary.add(&line);
            writeln!(out, "{line}").map_err(|error| Error::io("cannot print", error))?;
        }
    }
    let status = child
        .wait()
        .map_err(|error| Error::io("cannot wait for cargo", error))?;
    Ok(status.success())
}

/// The log's lines, each once: a test that several programs run is still one test that did not run.
fn skipped_tests(log: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(log).map_err(|error| Error::io(log.display(), error))?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_string)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_logged_twice_is_one_skip() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "b: no data\na: no data\n\nb: no data\n").unwrap();
        let skipped = skipped_tests(&log).unwrap();
        assert_eq!(skipped.into_iter().collect::<Vec<_>>(), ["a: no data", "b: no data"]);
    }
}
