//! `cargo xtask miri` and `cargo xtask tsan`: the checkers of Rust's nightly toolchain, over what needs no driver.
//!
//! Miri interprets the tests and reports undefined behaviour. ThreadSanitizer instruments them, the standard library
//! included, and reports data races. Both are used by hand: a driver or a foreign library in the process is either
//! refused (Miri) or not instrumented and reported wrongly (ThreadSanitizer). So are the models on shuttle, whose
//! threads are stacks that it switches itself.

use xshell::{Cmd, Shell, cmd};

use crate::error::{Error, Result};
use crate::workspace::{Workspace, package_of};

const TOOLCHAIN: &str = "nightly";

/// Tests in the library of a package, by parts of their names.
struct Part {
    package: &'static str,
    tests: &'static [&'static str],
}

/// The models on shuttle, by parts of their names.
const SHUTTLE: [&str; 6] = [
    "--skip",
    "alias::model",
    "--skip",
    "pool::model",
    "--skip",
    "table::model",
];

/// Nothing that is tested lies in a dependency, and optimising those takes most of a build.
const UNOPTIMISED: [&str; 8] = [
    "--config",
    "profile.dev.package.\"*\".opt-level=0",
    "--config",
    "profile.dev.package.hipcl-hip-host.opt-level=0",
    "--config",
    "profile.dev.package.hipcl-hip-host-blas.opt-level=0",
    "--config",
    "profile.dev.package.hipcl-hip-host-rccl.opt-level=0",
];

/// Libraries whose tests call no foreign function, or those of their tests that do not.
const MIRI: [Part; 5] = [
    Part {
        package: "interop",
        tests: &[
            "alias::",
            "deadline::",
            "grade::",
            "handoff::tests::the_watchdog_ends",
            "handoff::tests::tickets_that_have_ended",
            "ledger::model",
            "ledger::tests",
            "meter::ledger",
            "meter::slots",
            "pipeline::timeline",
            "route::",
            "sides::",
            "stretches::",
        ],
    },
    Part {
        package: "kernel-cache",
        tests: &[""],
    },
    Part {
        package: "clmgr",
        tests: &["access::", "deferred::", "memory_pool::", "pool::", "usage::"],
    },
    Part {
        package: "hip",
        tests: &["slice::", "uuid::", "view::"],
    },
    Part {
        package: "interop-capi",
        tests: &["handle::", "lend::", "table::"],
    },
];

/// Those that use several threads.
const TSAN: [Part; 3] = [
    Part {
        package: "interop",
        tests: &[
            "alias::",
            "ledger::model",
            "ledger::tests",
            "meter::",
            "the_watchdog_ends",
            "tickets_that_have_ended",
        ],
    },
    Part {
        package: "clmgr",
        tests: &["pool::", "usage::"],
    },
    Part {
        package: "interop-capi",
        tests: &["table::"],
    },
];

/// # Errors
/// [`Error::Missing`] without Miri; [`Error::Failed`] for undefined behaviour.
pub fn miri(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    need(&sh, "miri")?;
    for Part { package, tests } in MIRI {
        cargo(&sh)
            .args(["miri", "test", "--package", &package_of(package), "--lib", "--"])
            .args(tests)
            .args(SHUTTLE)
            // Tests read files and the clock, the locks of parking_lot keep addresses as numbers, and guards are leaked
            // on purpose.
            .env(
                "MIRIFLAGS",
                "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks",
            )
            // An interpreter is a thousand times slower.
            .env("HIPCL_MODEL_OPERATIONS", "300")
            .env("PROPTEST_CASES", "8")
            .run()
            .map_err(|_| Error::Failed(format!("Miri reported problems in {package}, see above")))?;
    }
    Ok(())
}

/// # Errors
/// [`Error::Missing`] without the standard library's source; [`Error::Failed`] for a data race.
pub fn tsan(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    need(&sh, "rust-src")?;
    let folder = workspace.target().join("tsan");
    for Part { package, tests } in TSAN {
        cargo(&sh)
            .args(["test", "-Zbuild-std", "--target", "x86_64-unknown-linux-gnu"])
            .args(["--package", &package_of(package), "--lib", "--target-dir"])
            .arg(&folder)
            .args(UNOPTIMISED)
            .arg("--")
            .args(tests)
            .args(SHUTTLE)
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("TSAN_OPTIONS", "halt_on_error=1")
            .run()
            .map_err(|_| {
                let reported = "ThreadSanitizer reported problems in";
                Error::Failed(format!("{reported} {package}, see above"))
            })?;
    }
    Ok(())
}

/// The nightly cargo, without what the cargo that started this program set for its own toolchain.
fn cargo(sh: &Shell) -> Cmd<'_> {
    cmd!(sh, "rustup run {TOOLCHAIN} cargo")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
}

fn need(sh: &Shell, component: &str) -> Result<()> {
    let listed = cmd!(sh, "rustup component list --installed --toolchain {TOOLCHAIN}")
        .quiet()
        .ignore_stderr()
        .read();
    match listed.is_ok_and(|list| list.lines().any(|line| line.starts_with(component))) {
        true => Ok(()),
        false => Err(Error::Missing(format!(
            "{component} is not installed; run `rustup toolchain install {TOOLCHAIN} --component {component}`"
        ))),
    }
}
