//! The C parser: the machine's own, else the pinned wheel of the Python package index, unpacked into the work folder.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;

const WHEEL: &str = "libclang==18.1.1";

/// The folder that holds the `libclang` shared library.
pub fn folder(shell: &Shell, work: &Path) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("LIBCLANG_PATH") {
        return Ok(folder.into());
    }
    if let Some(folder) = installed() {
        return Ok(folder);
    }
    let wheel = work.join("libclang");
    if let Some(folder) = search(&wheel, 4) {
        return Ok(folder);
    }
    println!("codegen: fetching {WHEEL} (24 MB)");
    fs::create_dir_all(&wheel)?;
    let _folder = shell.push_dir(&wheel);
    cmd!(
        shell,
        "python3 -m pip download --quiet --no-deps --only-binary :all: {WHEEL}"
    )
    .quiet()
    .run()?;
    for entry in fs::read_dir(&wheel)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "whl") {
            cmd!(shell, "python3 -m zipfile -e {file} {wheel}").quiet().run()?;
        }
    }
    search(&wheel, 4).ok_or_else(|| format!("the package {WHEEL} contains no libclang shared library").into())
}

/// Distributions put it beside their other libraries or below `/usr/lib/llvm-*`.
fn installed() -> Option<PathBuf> {
    let mut folders = vec![
        PathBuf::from("/usr/lib/x86_64-linux-gnu"),
        PathBuf::from("/usr/lib64"),
        PathBuf::from("/usr/lib"),
    ];
    let mut llvm: Vec<PathBuf> = fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("llvm-"))
        })
        .map(|path| path.join("lib"))
        .collect();
    llvm.sort();
    folders.extend(llvm.into_iter().rev());
    folders.into_iter().find(|folder| search(folder, 0).is_some())
}

/// Looks for the library in `folder` and up to `depth` levels below it.
fn search(folder: &Path, depth: usize) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let library = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with("libclang.so")
                || name.starts_with("libclang-") && !name.starts_with("libclang-cpp") && name.contains(".so")
        })
    };
    if entries.iter().any(library) {
        return Some(folder.to_path_buf());
    }
    if depth == 0 {
        return None;
    }
    entries
        .iter()
        .filter(|path| path.is_dir())
        .find_map(|path| search(path, depth - 1))
}
