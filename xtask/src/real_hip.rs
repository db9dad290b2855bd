//! `cargo xtask real-hip`: AMD's own HIP of each supported release, on any machine.
//!
//! The distribution's packages are unpacked into `target/real-hip`, with everything they need down to the C library, so
//! the release of this machine's system does not matter. The tests of `hip-sys` for the real library then run in there.
//! Without a GPU the library has to answer `hipErrorNoDevice`, as a value.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::codegen::releases::{RELEASES, Release};
use crate::codegen::sources::Mirror;
use crate::error::{Error, Result};
use crate::executables;
use crate::workspace::{Workspace, cargo};

/// The test program, and what each of its tests prints if it did not skip.
const TEST: &str = "real_library";
const PROOFS: [&str; 2] = ["hipGetDeviceCount -> ", "HIPRTC "];

/// Where a package puts libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// # Errors
/// [`Error::Missing`] if the packages are unavailable here; [`Error::Failed`] if a library does not answer as required.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let program = test_program(&sh)?;
    // Of a release that is read from bindings there is not a library to be had.
    let with_library = RELEASES
        .iter()
        .filter(|release| release.supported)
        .filter_map(|release| Some((release, release.suite()?)));
    for (release, suite) in with_library {
        let tree = unpacked(&sh, workspace.target(), release, suite)
            .map_err(|error| Error::Missing(format!("no HIP of ROCm {}: {error}", release.name)))?;
        let lines = test(&sh, &program, &tree).map_err(|output| {
            Error::Failed(format!(
                "the HIP library of ROCm {} does not pass:\n{output}",
                release.name
            ))
        })?;
        for line in lines {
            println!("ROCm {}: {line}", release.name);
        }
    }
    Ok(())
}

/// Builds the test program; returns its path.
fn test_program(sh: &Shell) -> Result<PathBuf> {
    let cargo = cargo();
    let messages = cmd!(
        sh,
        "{cargo} test --quiet --package hipcl-hip-sys --test {TEST} --no-run --message-format json"
    )
    .quiet()
    .read()?;
    executables::read(&messages)
        .find(|built| built.name == TEST)
        .map(|built| built.path)
        .ok_or_else(|| Error::Failed(format!("cargo built no test program {TEST}")))
}

type Trouble = Box<dyn std::error::Error>;

/// The folder with the release's HIP and all that it needs.
fn unpacked(sh: &Shell, target: &Path, release: &Release, suite: &str) -> std::result::Result<PathBuf, Trouble> {
    let folder = target.join("real-hip").join(release.name);
    let packages: Vec<String> = release
        .libraries
        .iter()
        .filter(|library| ["hip", "hiprtc"].contains(&library.name))
        .map(|library| format!("{}={}", library.package.name, library.package.version))
        .collect();
    // Written last, so an interrupted run begins anew.
    let (record, contents) = (folder.join("packages"), packages.join("\n"));
    let tree = folder.join("tree");
    if fs::read_to_string(&record).is_ok_and(|text| text == contents) {
        return Ok(tree);
    }
    println!("fetching the HIP of ROCm {} (60 MB)", release.name);
    let config = apt(sh, suite, &folder)?;
    cmd!(
        sh,
        "apt-get -qq -y --no-install-recommends --download-only --target-release {suite} install {packages...}"
    )
    .env("APT_CONFIG", config)
    .quiet()
    .ignore_stdout()
    .run()?;
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let archives = folder.join("cache/archives");
    for entry in fs::read_dir(&archives)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            cmd!(sh, "dpkg-deb -x {file} {tree}").quiet().run()?;
            fs::remove_file(&file)?;
        }
    }
    fs::write(record, contents)?;
    Ok(tree)
}

/// A private apt configuration for which nothing is installed, so it fetches the C library too.
fn apt(sh: &Shell, suite: &str, folder: &Path) -> std::result::Result<PathBuf, Trouble> {
    let mirror = Mirror::of_this_machine(sh)?;
    let mut lines = mirror.line(suite);
    if suite == "experimental" {
        // That suite holds only what is ahead of the unstable one.
        lines += &mirror.line("unstable");
    }
    for part in ["lists/partial", "cache/archives/partial", "state"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("status"), "")?;
    fs::write(folder.join("sources.list"), lines)?;
    let place = folder.display();
    let config = folder.join("apt.conf");
    fs::write(
        &config,
        format!(
            "Dir::Etc::SourceList \"{place}/sources.list\";\n\
             Dir::Etc::SourceParts \"-\";\n\
             Dir::State \"{place}/state\";\n\
             Dir::State::Lists \"{place}/lists\";\n\
             Dir::State::Status \"{place}/status\";\n\
             Dir::Cache \"{place}/cache\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Sandbox::User \"\";\n\
             Acquire::Languages \"none\";\n"
        ),
    )?;
    cmd!(sh, "apt-get -qq update")
        .env("APT_CONFIG", &config)
        .quiet()
        .run()?;
    Ok(config)
}

/// Runs the program with the tree's own dynamic linker; returns the lines that prove that nothing was skipped.
fn test(sh: &Shell, program: &Path, tree: &Path) -> std::result::Result<Vec<String>, String> {
    let linker = tree.join("usr/lib64/ld-linux-x86-64.so.2");
    let libraries = tree.join(LIBRARIES);
    let hip = fs::read_dir(&libraries)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("libamdhip64.so.")
        })
        .ok_or_else(|| format!("no libamdhip64 in {}", libraries.display()))?;
    let output = cmd!(
        sh,
        "{linker} --library-path {libraries} {program} --nocapture --test-threads 1"
    )
    .env("HIPCL_HIP_LIBRARY", hip)
    .env_remove("HIPCL_HIPRTC_LIBRARY")
    .env_remove("ROCM_PATH")
    .env_remove("HIP_PATH")
    .quiet()
    .ignore_status()
    .output()
    .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(text + &String::from_utf8_lossy(&output.stderr));
    }
    proofs(&text).ok_or(text)
}

/// One line for each proof; nothing if one is absent.
fn proofs(output: &str) -> Option<Vec<String>> {
    PROOFS
        .iter()
        .map(|proof| {
            let line = output.lines().find(|line| line.contains(proof))?;
            let file = line.find("libamdhip64").or(line.find("libhiprtc"))?;
            Some(line[file..].to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_skipped_a_test_proves_nothing() {
        let whole = "running 2 tests\n/x/libhiprtc.so.7: HIPRTC 9.0\n\
             test a ... /x/libamdhip64.so.7: 519 function(s), hipGetDeviceCount -> hipErrorNoDevice (100)\n";
        assert_eq!(
            proofs(whole).expect("both are there"),
            [
                "libamdhip64.so.7: 519 function(s), hipGetDeviceCount -> hipErrorNoDevice (100)",
                "libhiprtc.so.7: HIPRTC 9.0"
            ]
        );
        assert_eq!(proofs("skipped: a: none\n/x/libhiprtc.so.7: HIPRTC 9.0\n"), None);
    }
}
