//! Intel's OpenCL runtime for CPUs, from the wheels its maker publishes.
//!
//! The wheels are fetched by `pip` with pinned digests and unpacked by Python's own zip module: `pip install --target`
//! drops the shared libraries, which lie in the wheels' `data` trees, and a virtual environment needs a module that
//! many distributions package apart.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::cmd;

use super::Machine;
use super::install::merge;
use crate::workspace::Workspace;

const REQUIREMENTS: &str = "xtask/opencl-cpu-requirements.txt";

/// Fetches, unpacks and merges the wheels.
pub fn fill(machine: &Machine<'_>, folder: &Path) -> Result<PathBuf, String> {
    let workspace = machine.workspace;
    if !cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) {
        return Err("is published for x86-64 Linux with glibc only".into());
    }
    let python = python(workspace)?;
    println!(
        "OpenCL: Intel's runtime is under Intel's own licence (kept in {}); this project only fetches it. \
         About 280 MB to download, 850 MB on disk.",
        folder.with_extension("").join("licensing").display()
    );
    let text = |error: xshell::Error| error.to_string();
    let io = |error: std::io::Error| format!("cannot unpack the wheels: {error}");
    let sh = workspace.shell().map_err(|error| error.to_string())?;
    let downloads = folder.join("wheels");
    let requirements = workspace.root().join(REQUIREMENTS);
    cmd!(
        sh,
        "{python} -m pip download --disable-pip-version-check --no-input --no-deps --only-binary :all:
         --require-hashes --requirement {requirements} --dest {downloads}"
    )
    .run()
    .map_err(|_| "pip could not download it, see above (no network, or no space left?)".to_string())?;

    let mut wheels: Vec<PathBuf> = sh.read_dir(&downloads).map_err(text)?;
    wheels.sort();
    for wheel in &wheels {
        let name = wheel.file_name().unwrap_or_default();
        println!("OpenCL: unpacking {}", name.display());
        let unpacked = folder.join("unpacked");
        cmd!(sh, "{python} -m zipfile -e {wheel} {unpacked}")
            .quiet()
            .run()
            .map_err(text)?;
        fs::remove_file(wheel).map_err(io)?;
        for tree in sh.read_dir(&unpacked).map_err(text)? {
            match tree.extension().and_then(|extension| extension.to_str()) {
                Some("data") => merge(&tree.join("data"), folder).map_err(io)?,
                Some("dist-info") => keep_licence(&tree, folder).map_err(io)?,
                _ => {}
            }
        }
        fs::remove_dir_all(&unpacked).map_err(io)?;
    }
    fs::remove_dir_all(&downloads).map_err(io)?;
    Ok("lib/libintelocl.so".into())
}

fn keep_licence(dist_info: &Path, folder: &Path) -> std::io::Result<()> {
    let package = dist_info.file_stem().unwrap_or_default();
    let licence = dist_info.join("LICENSE.txt");
    if !licence.exists() {
        return Ok(());
    }
    let kept = folder.join("licensing").join(package);
    fs::create_dir_all(&kept)?;
    fs::rename(licence, kept.join("LICENSE.txt"))
}

/// A Python that has pip.
fn python(workspace: &Workspace) -> Result<&'static str, String> {
    let sh = workspace.shell().map_err(|error| error.to_string())?;
    let mut reasons = Vec::new();
    for name in ["python3", "python"] {
        match cmd!(sh, "{name} -m pip --version")
            .quiet()
            .ignore_stderr()
            .read()
        {
            Ok(_) => return Ok(name),
            Err(_) => reasons.push(name),
        }
    }
    Err(format!(
        "needs Python 3 with pip, and neither {} has it (Debian, Ubuntu: `apt install python3-pip`)",
        reasons.join(" nor ")
    ))
}
