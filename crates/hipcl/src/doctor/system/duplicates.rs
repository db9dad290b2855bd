//! Runtimes of which a process must hold one.
//!
//! Two files of the HSA runtime are two runtimes with a virtual memory each, and an address of one means nothing to the
//! other.

use std::collections::BTreeSet;

use super::super::findings::Check;
use super::super::mapped::{self, SINGLE};
use super::{Environment, Root, RuntimeReport};

pub(super) fn checks(root: &Root, environment: &Environment, runtime: &RuntimeReport, amd: bool) -> Vec<Check> {
    SINGLE
        .into_iter()
        .filter_map(|library| {
            let loaded = loaded(runtime, library);
            let installed = installed(root, environment, library);
            // libOpenCL is everybody's; the others are AMD's
            let expected = amd || library == "libOpenCL";
            (expected || !loaded.is_empty()).then(|| check(library, &loaded, &installed))
        })
        .collect()
}

fn check(library: &str, loaded: &[&str], installed: &[String]) -> Check {
    if let [_, _, ..] = loaded {
        return Check::bad(
            library,
            format!("loaded {} times: {}", loaded.len(), loaded.join(", ")),
            format!(
                "two files of {library} are loaded in one process and do not know each other's memory: remove one from the search path (LD_LIBRARY_PATH, ROCM_PATH, a Python package)"
            ),
        );
    }
    let on_path = match installed {
        [] => "none in the usual folders".to_owned(),
        files => format!("installed: {}", files.join(", ")),
    };
    match loaded {
        [file] => Check::good(library, format!("loaded {file}; {on_path}")),
        _ => Check::told(library, format!("not loaded; {on_path}")),
    }
}

fn loaded<'a>(runtime: &'a RuntimeReport, library: &str) -> Vec<&'a str> {
    runtime
        .loaded
        .iter()
        .map(String::as_str)
        .filter(|path| {
            let name = path.rsplit('/').next().unwrap_or_default();
            mapped::is(name, library)
        })
        .collect()
}

/// Folders in the active environment that hold AMD's Python wheels.
fn wheels(root: &Root, environment: &Environment) -> Vec<String> {
    let mut folders = Vec::new();
    for python in ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(|variable| environment.get(variable))
    {
        for release in root.names(&format!("{python}/lib")) {
            let site = format!("{python}/lib/{release}/site-packages");
            let packages = root.names(&site).into_iter();
            let of_rocm = packages.filter(|name| name.starts_with("_rocm_sdk_core"));
            folders.extend(of_rocm.map(|name| format!("{site}/{name}/lib")));
        }
    }
    folders
}

/// Distinct files in the folders that the dynamic linker and this program search.
fn installed(root: &Root, environment: &Environment, library: &str) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    let list = environment.get("LD_LIBRARY_PATH").unwrap_or_default();
    folders.extend(list.split(':').filter(|it| !it.is_empty()).map(str::to_owned));
    for variable in ["ROCM_PATH", "HIP_PATH"] {
        folders.extend(environment.get(variable).map(|path| format!("{path}/lib")));
    }
    let releases = root.names("/opt");
    let rocm = releases.iter().filter(|name| name.starts_with("rocm"));
    folders.extend(rocm.map(|name| format!("/opt/{name}/lib")));
    // since ROCm 10 each release has a folder inside
    for release in root.names("/opt/rocm") {
        if release.starts_with("core") {
            folders.push(format!("/opt/rocm/{release}/lib"));
        }
    }
    folders.extend(wheels(root, environment));
    for folder in [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
    ] {
        folders.push(folder.to_owned());
    }
    let mut files = BTreeSet::new();
    for folder in folders {
        for name in root.names(&folder) {
            if mapped::is(&name, library) {
                // several names are usually links to one file
                let path = root.path(&format!("{folder}/{name}"));
                if let Ok(file) = std::fs::canonicalize(&path) {
                    let base = std::fs::canonicalize(root.path("/")).unwrap_or_default();
                    let inside = file.strip_prefix(&base).unwrap_or(&file);
                    files.insert(format!("/{}", inside.display()).replace("//", "/"));
                }
            }
        }
    }
    files.into_iter().collect()
}
