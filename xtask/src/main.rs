//! The project's chores: `cargo xtask <task>`.
//!
//! | task | what it does |
//! |---|---|
//! | `setup` | finds an OpenCL runtime and a C++ compiler, or puts a CPU runtime into `target/` |
//! | `demo` | set-up, then the main job with a table and a picture |
//! | `test` | set-up, then every test of the workspace |
//! | `test-gpu` | the tests on one platform, here or packed for a machine without Rust |
//! | `codegen` | writes the raw bindings from the real ROCm headers |
//! | `symbols` | what the real libraries of each ROCm release export, and what changed between releases |
//! | `tidy` | the project's own rules: arrows between crates, knots of modules, unsafe code, no traces of a machine |
//! | `consumers` | each published crate in a program outside of the workspace |
//! | `oclgrind` | every OpenCL kernel on a device that checks each access to memory |
//! | `real-hip` | AMD's own HIP of each release loads and answers, on any machine |
//! | `differences` | the host platform beside AMD's own HIP, on random sequences of calls |
//! | `targets` | the raw layer compiles for other systems |
//! | `msrv` | the oldest compiler that each crate states |
//! | `mutants` | whether the tests notice changes of the code that orders work |
//! | `miri`, `tsan` | Miri and ThreadSanitizer over what needs no driver |
//! | `bench` | what the layers cost on the host |
//! | `compile-time` | seconds for each crate of the raw layer |
//! | `docs` | API documentation and the book |
//! | `ci` | what a change has to pass |
//!
//! Each task lies in the module of its name; `miri` and `tsan` share `nightly`.

mod bench;
mod ci;
mod codegen;
mod compile_time;
mod consumers;
mod demo;
mod differences;
mod docs;
mod error;
mod msrv;
mod mutants;
mod nightly;
mod oclgrind;
mod real_hip;
mod setup;
mod symbols;
mod targets;
mod test;
mod test_gpu;
mod tidy;
mod workspace;

use std::process::ExitCode;

use error::{Error, Result};
use workspace::Workspace;

const TASKS: &str = "setup, demo, test, test-gpu, codegen, symbols, tidy, consumers, oclgrind, real-hip, differences, targets, msrv, compile-time, mutants, miri, tsan, bench, docs, ci";

const HELP: &str = "\
usage: cargo xtask <task> [options]

  setup                  find a C++ compiler and an OpenCL runtime, or install a CPU runtime into target/
    --force-local        install it even if the system has a runtime
    --vulkan             put Mesa's software Vulkan driver into target/, for the tests of interop::vulkan
    --with intel|pocl    install this one
  demo                   set up, build the program, run the three jobs
  test [cargo test args] set up, run every test, end with `N passed, N failed, N skipped`
    --opencl intel|pocl  on this OpenCL runtime, installed beside the one that programs find (the first option)
  test-gpu               the tests of HIP, rocBLAS and OpenCL, and the command's jobs, on one platform
    --platform P         amd, nvidia or host (default)
    --report DIR         where report.json and report.txt go
    --bundle DIR         pack the suite for a machine without Rust instead of running it
    --emulated DIR       on AMD's emulator, see docs/src/testing.md (--gpu NAME: which GPU)
    --package NAME       this package only; may be repeated (the jobs belong to hipcl)
    --limit SECONDS      the longest time of a program
  codegen [--check]      write the raw bindings from the ROCm headers (--check: fail on a difference)
  symbols [--verbose]    how far each release's real library fills each table
    A B                  what changed between two releases, e.g. `symbols 6.4 7.2`
    --refresh            read the libraries' symbol lists anew (downloads gigabytes)
  tidy                   check arrows between crates, knots of modules, unsafe code and tracked files
  consumers [--bless]    build each published crate in a program outside of the workspace
                         (--bless: write the lists of the crates that come with it)
  oclgrind               run every OpenCL kernel on Oclgrind, fetched into target/, which checks each access
  real-hip               load AMD's own HIP of each release, fetched into target/, and see it answer
  differences            compare the host platform with AMD's HIP on an emulated card, call by call
    --real FOLDER        where the emulator was set up
    --sequences A..B     these random sequences (0..5200)
    --record             write AMD's answers for machines without the emulator
  targets                compile the raw layer for other systems
  msrv                   build each crate with the oldest Rust that it states, fetched by rustup
  compile-time           print how long each crate of the raw layer takes to compile
  mutants [PACKAGE...]   change the code that orders work, bit by bit, and see whether the tests notice (hours)
    --shard K/N          every Nth change only, from the Kth on, counted from 0
  miri                   interpret the tests that need no driver, on the nightly toolchain's Miri
  tsan                   run those with threads under ThreadSanitizer, on the nightly toolchain
  bench [CRATE...]       what the layers cost on the host; for figures of devices see `hipcl bench`
  docs                   build the API documentation and the book
  ci                     format, tidy, codegen --check, clippy, consumers, oclgrind, real-hip, targets,
                         msrv, compile-time, docs, test --opencl pocl, test";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let Some((task, rest)) = args.split_first() else {
        return Err(Error::Usage(format!("name a task: {TASKS}")));
    };
    match task.as_str() {
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        // Not for people: `setup` runs itself so that a driver that crashes takes only a child with it.
        setup::probe::CHILD_TASK => setup::probe::child(rest),
        "setup" => setup::main(&Workspace::discover()?, rest),
        "demo" => no_options("demo", rest).and_then(|()| demo::run(&Workspace::discover()?)),
        "test" => test::run(&Workspace::discover()?, rest),
        "test-gpu" => test_gpu::run(Workspace::discover, rest),
        test_gpu::RUNNER_TASK => test_gpu::run_bundle(rest),
        "codegen" => codegen_task(&Workspace::discover()?, rest),
        "symbols" => symbols_task(&Workspace::discover()?, rest),
        "tidy" => no_options("tidy", rest).and_then(|()| tidy::run(&Workspace::discover()?)),
        "consumers" => consumers::run(&Workspace::discover()?, rest),
        "oclgrind" => {
            no_options("oclgrind", rest).and_then(|()| oclgrind::run(&Workspace::discover()?))
        }
        "real-hip" => {
            no_options("real-hip", rest).and_then(|()| real_hip::run(&Workspace::discover()?))
        }
        "differences" => differences::run(&Workspace::discover()?, rest),
        "targets" => {
            no_options("targets", rest).and_then(|()| targets::run(&Workspace::discover()?))
        }
        "msrv" => no_options("msrv", rest).and_then(|()| msrv::run(&Workspace::discover()?)),
        "compile-time" => no_options("compile-time", rest)
            .and_then(|()| compile_time::run(&Workspace::discover()?)),
        "mutants" => mutants::run(&Workspace::discover()?, rest),
        "miri" => no_options("miri", rest).and_then(|()| nightly::miri(&Workspace::discover()?)),
        "tsan" => no_options("tsan", rest).and_then(|()| nightly::tsan(&Workspace::discover()?)),
        "bench" => bench::run(&Workspace::discover()?, rest),
        "docs" => no_options("docs", rest).and_then(|()| docs::run(&Workspace::discover()?)),
        "ci" => no_options("ci", rest).and_then(|()| ci::run(&Workspace::discover()?)),
        other => Err(Error::Usage(format!(
            "no task named {other:?}; the tasks are {TASKS}"
        ))),
    }
}

fn codegen_task(workspace: &Workspace, args: &[String]) -> Result<()> {
    codegen::run(workspace.root(), args).map_err(|error| Error::Failed(error.to_string()))
}

fn symbols_task(workspace: &Workspace, args: &[String]) -> Result<()> {
    symbols::run(workspace.root(), args).map_err(|error| Error::Failed(error.to_string()))
}

fn no_options(task: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(option) => Err(Error::Usage(format!(
            "`cargo xtask {task}` takes no options, got {option:?}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(list: &[&str]) -> Vec<String> {
        list.iter().map(|arg| arg.to_string()).collect()
    }

    #[test]
    fn an_unknown_task_is_one_line_with_the_list_and_status_2() {
        let error = run(&args(&["frobnicate"])).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.status(), 2);
        assert!(!text.contains('\n'), "{text}");
        for task in TASKS.split(", ") {
            assert!(text.contains(task), "{text} does not name {task}");
            assert!(HELP.contains(&format!("\n  {task} ")), "help lacks {task}");
        }
    }

    #[test]
    fn an_option_no_task_knows_is_refused_before_any_work() {
        for task in [
            "demo",
            "test-gpu",
            "tidy",
            "consumers",
            "oclgrind",
            "real-hip",
            "targets",
            "msrv",
            "compile-time",
            "mutants",
            "docs",
            "ci",
            "setup",
        ] {
            let error = run(&args(&[task, "--frobnicate"])).unwrap_err();
            assert_eq!(error.status(), 2, "{task}: {error}");
        }
    }

    #[test]
    fn tests_on_a_runtime_that_is_not_known_are_refused_with_the_known_ones() {
        for named in [
            ["test", "--opencl", "frob"].as_slice(),
            &["test", "--opencl"],
        ] {
            let error = run(&args(named)).unwrap_err();
            assert_eq!(error.status(), 2, "{error}");
            assert!(error.to_string().contains("intel"), "{error}");
        }
    }
}
