//! The project's tasks: `cargo xtask <task>`. `cargo xtask help` lists the tasks, [`Task`] defines them.
//!
//! Each task lies in the module of its name; `miri` and `tsan` share `nightly`.

mod bench;
mod capi;
mod ci;
mod codegen;
mod compile_time;
mod consumers;
mod demo;
mod differences;
mod dist;
mod docs;
mod error;
mod executables;
mod msrv;
mod mutants;
mod nightly;
mod oclgrind;
mod package;
mod pictures;
mod real_hip;
mod setup;
mod symbols;
mod targets;
mod test;
mod test_gpu;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};
use error::{Error, Result};
use workspace::Workspace;

/// The project's tasks
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Find a C++ compiler and an OpenCL runtime, or install a CPU runtime into target/
    Setup(setup::Options),
    /// Set up, build the program and run the jobs
    Demo,
    /// Set up, run every test and end with `N passed, N failed, N skipped`
    #[command(disable_help_flag = true)]
    Test(test::Options),
    /// Run the tests of HIP, rocBLAS and OpenCL, and the jobs of the command, on one platform
    TestGpu(test_gpu::Options),
    /// Run the quick checks: format, tidy, clippy, the unit tests of the libraries and of this program
    Check,
    /// Write the tables that the sources decide: lists of functions, what is built, what the routes do
    Tables,
    /// Generate the raw bindings from the ROCm headers
    Codegen(codegen::Options),
    /// Build the C library and install it into a folder
    Capi(capi::Options),
    /// Pack the C library, its headers, the command and the software device into an archive, and try it
    Dist(dist::Options),
    /// Show what the libraries of each ROCm release export, and what changed between releases
    Symbols(symbols::Options),
    /// Check dependencies between crates, cycles of modules, unsafe code and tracked files
    Tidy,
    /// Build each published crate in a program outside the workspace
    Consumers(consumers::Options),
    /// Pack each published crate, and build each from its package alone
    Package,
    /// Run every OpenCL kernel on Oclgrind, fetched into target/, which checks each memory access
    Oclgrind,
    /// Load AMD's HIP library of each release, fetched into target/, and check that it answers
    RealHip,
    /// Compare the host platform with AMD's HIP on an emulated GPU, call by call
    Differences(differences::Options),
    /// Compile the raw layer for other systems
    Targets,
    /// Build each crate with the oldest Rust that it supports, fetched by rustup
    Msrv,
    /// Print how long each crate of the raw layer takes to compile
    CompileTime,
    /// Mutate the code that orders work, and check that the tests notice (takes hours)
    Mutants(mutants::Options),
    /// Interpret the tests that need no driver with Miri (nightly toolchain)
    Miri,
    /// Run the multi-threaded ones of these tests under ThreadSanitizer (nightly toolchain)
    Tsan,
    /// Measure the overhead of the layers on the host; `hipcl bench` measures devices
    Bench(bench::Options),
    /// Build the API documentation and the book
    Docs,
    /// Draw every picture of the README and the book, as this machine shows it
    Pictures,
    /// Run everything that a change must pass, the tests last
    Ci,
    /// Try an OpenCL library. `setup` runs itself, so a crash of the driver ends only the child process.
    #[command(name = setup::probe::CHILD_TASK, hide = true)]
    Probe {
        /// The library
        library: String,
    },
    /// Run the programs of the bundle that this program is part of
    #[command(name = test_gpu::RUNNER_TASK, hide = true)]
    GpuRun(test_gpu::Options),
}

fn main() -> ExitCode {
    let done = parse(std::env::args()).and_then(|task| task.map_or(Ok(()), run));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// The task, or none if help was asked for and printed. A wrong command line is an error of one line.
fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Task>> {
    let error = match Command::try_parse_from(args) {
        Ok(command) => return Ok(Some(command.task)),
        Err(error) => error,
    };
    let tasks = || {
        let command = Command::command();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let names: Vec<String> = shown.map(|it| it.get_name().to_owned()).collect();
        names.join(", ")
    };
    match error.kind() {
        ErrorKind::DisplayHelp => {
            print!("{error}");
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::Usage(format!("no task; the tasks are {}", tasks())))
        }
        ErrorKind::InvalidSubcommand => {
            let text = error.to_string();
            Err(Error::Usage(format!("{}; the tasks are {}", said(&text), tasks())))
        }
        _ => {
            let text = error.to_string();
            Err(Error::Usage(format!("{}; see `cargo xtask help`", said(&text))))
        }
    }
}

/// The complaint alone, without usage and hints, on one line.
fn said(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let complaint = text.split("\n\n").next().unwrap_or_default();
    complaint.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn run(task: Task) -> Result<()> {
    // What is wrong with the options is said before the workspace is examined.
    let workspace = Workspace::discover;
    match task {
        Task::Setup(options) => setup::main(&workspace()?, &options),
        Task::Demo => demo::run(&workspace()?),
        Task::Test(options) => test::run(&workspace()?, &options),
        Task::TestGpu(options) => test_gpu::run(workspace, &options),
        Task::Check => ci::check(&workspace()?),
        Task::Tables => test::tables(&workspace()?),
        Task::Codegen(options) => codegen_task(&workspace()?, options),
        Task::Capi(options) => capi::run(&workspace()?, &options),
        Task::Dist(options) => dist::run(&workspace()?, &options),
        Task::Symbols(options) => symbols_task(&workspace()?, &options),
        Task::Tidy => tidy::run(&workspace()?),
        Task::Consumers(options) => consumers::run(&workspace()?, options),
        Task::Package => package::run(&workspace()?),
        Task::Oclgrind => oclgrind::run(&workspace()?),
        Task::RealHip => real_hip::run(&workspace()?),
        Task::Differences(options) => differences::run(&workspace()?, &options),
        Task::Targets => targets::run(&workspace()?),
        Task::Msrv => msrv::run(&workspace()?),
        Task::CompileTime => compile_time::run(&workspace()?),
        Task::Mutants(options) => mutants::run(&workspace()?, &options),
        Task::Miri => nightly::miri(&workspace()?),
        Task::Tsan => nightly::tsan(&workspace()?),
        Task::Bench(options) => bench::run(&workspace()?, &options),
        Task::Docs => docs::run(&workspace()?),
        Task::Pictures => pictures::run(&workspace()?),
        Task::Ci => ci::run(&workspace()?),
        Task::Probe { library } => setup::probe::child(&library),
        Task::GpuRun(options) => test_gpu::run_bundle(&options),
    }
}

fn codegen_task(workspace: &Workspace, options: codegen::Options) -> Result<()> {
    codegen::run(workspace.root(), options).map_err(|error| Error::Failed(error.to_string()))
}

fn symbols_task(workspace: &Workspace, options: &symbols::Options) -> Result<()> {
    symbols::run(workspace.root(), options).map_err(|error| Error::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Option<Task>> {
        let args = ["xtask"].iter().chain(args);
        parse(args.map(|arg| arg.to_string()))
    }

    #[test]
    fn every_task_is_well_formed() {
        Command::command().debug_assert();
    }

    #[test]
    fn an_unknown_task_is_one_line_with_the_list_and_status_2() {
        for wrong in [&["frobnicate"][..], &[]] {
            let error = parsed(wrong).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.status(), 2);
            assert!(!text.contains('\n'), "{text}");
            for task in ["setup", "test-gpu", "tidy", "ci"] {
                assert!(text.contains(task), "{text} does not name {task}");
            }
            assert!(!text.contains(test_gpu::RUNNER_TASK), "{text}");
        }
    }

    #[test]
    fn an_option_that_a_task_does_not_know_is_one_line() {
        let command = Command::command();
        for task in command.get_subcommands().map(clap::Command::get_name) {
            // What it does not know goes to cargo.
            if task == "test" {
                continue;
            }
            let error = parsed(&[task, "--frobnicate"]).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.status(), 2, "{task}: {text}");
            assert!(text.contains("--frobnicate") && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn wrong_values_are_refused_before_any_work() {
        for wrong in [
            &["test", "--opencl", "frob"][..],
            &["test", "--opencl"],
            &["setup", "--with", "frob"],
            &["setup", "--vulkan", "--force-local"],
            &["test-gpu", "--platform", "cuda"],
            &["test-gpu", "--platform"],
            &["test-gpu", "--limit", "0"],
            &["test-gpu", "--limit", "soon"],
            &["test-gpu", "--package", "xtask"],
            &["test-gpu", "--gpu", "gfx908"],
            &["test-gpu", "--emulated", "dir", "--bundle", "out"],
            &["symbols", "6.4"],
            &["symbols", "6.4", "7.2", "--refresh"],
            &["differences"],
            &["differences", "--real", "dir", "--sequences", "9"],
            &["mutants", "xtask"],
            &["mutants", "--shard", "8/8"],
            &["mutants", "--most", "few"],
        ] {
            let error = parsed(wrong).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.status(), 2, "{wrong:?}: {text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn what_cargo_is_to_get_is_passed_on() {
        let Ok(Some(Task::Test(options))) = parsed(&["test", "--opencl", "pocl", "-p", "hip", "--", "--help"]) else {
            panic!("a test");
        };
        assert_eq!(options.opencl.as_deref(), Some("pocl"));
        assert_eq!(options.args, ["-p", "hip", "--", "--help"]);
        let Ok(Some(Task::Test(options))) = parsed(&["test", "--help"]) else {
            panic!("a test");
        };
        assert_eq!((options.opencl, options.args), (None, vec!["--help".to_owned()]));
    }
}
