//! `cargo xtask compile-time`: how long each crate of the raw layer takes to compile, with its dependencies already
//! built.

use std::time::{Duration, Instant};

use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, package_of, seconds};

/// Their tables have thousands of function types, so a careless change to the generator shows here first.
const CRATES: [&str; 6] = [
    "rocm-loader",
    "hip-sys",
    "hsa-sys",
    "rocblas-sys",
    "rocsolver-sys",
    "rccl-sys",
];

/// The longest acceptable wait for a user of the crate, on two cores.
const LIMIT: Duration = Duration::from_secs(10);

/// Prints a line for each crate. One over the limit is reported but is not a failure: the machine may just be busy.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let cargo = cargo();
    // A folder of its own, so nothing else has to be compiled again.
    let target = workspace.target().join("compile-time");
    let build = |name: &str| {
        let package = package_of(name);
        cmd!(sh, "{cargo} build --quiet --package {package} --target-dir {target}")
            .quiet()
            .run()
            .map_err(|_| Error::Failed(format!("{name} does not build, see above")))
    };
    for name in CRATES {
        build(name)?;
        let package = package_of(name);
        cmd!(sh, "{cargo} clean --quiet --package {package} --target-dir {target}")
            .quiet()
            .run()?;
        let started = Instant::now();
        build(name)?;
        let took = started.elapsed();
        println!("{name}: {}{}", seconds(took), verdict(took));
    }
    Ok(())
}

fn verdict(took: Duration) -> &'static str {
    if took > LIMIT { ", over the limit of 10 s" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_over_the_limit_is_named_as_such() {
        assert_eq!(verdict(LIMIT), "");
        assert!(verdict(LIMIT + Duration::from_millis(1)).contains("10 s"));
        assert_eq!(LIMIT, Duration::from_secs(10));
    }
}
