//! The C++ compiler with which the host platform builds HIP kernels.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::workspace::Workspace;

const REMEDY: &str = "install one (Debian, Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`; \
    Arch: `pacman -S gcc`; openSUSE: `zypper install gcc-c++`), or set CXX to yours";

/// Compiles a small shared library: an installed compiler that lacks its headers or linker does not count.
/// Returns the first that works.
pub fn find(workspace: &Workspace) -> Result<OsString> {
    let candidates: Vec<OsString> = match std::env::var_os("CXX").filter(|name| !name.is_empty()) {
        Some(named) => vec![named],
        None => ["c++", "g++", "clang++"].map(OsString::from).to_vec(),
    };
    let mut tried = Vec::new();
    for compiler in candidates {
        match compiles(compiler.as_ref(), workspace.target()) {
            Ok(()) => {
                println!("C++ compiler: {}", compiler.display());
                return Ok(compiler);
            }
            Err(reason) => tried.push(format!("{}: {reason}", compiler.display())),
        }
    }
    Err(Error::Missing(format!(
        "no working C++ compiler ({}); {REMEDY}",
        tried.join("; ")
    )))
}

fn compiles(compiler: &Path, target: &Path) -> std::result::Result<(), String> {
    let folder = target.join(format!("xtask-compiler-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let source = folder.join("check.cpp");
    let outcome = std::fs::write(
        &source,
        "#include <cmath>\nextern \"C\" float check(float x) { return std::sqrt(x); }\n",
    )
    .and_then(|()| {
        Command::new(compiler)
            .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"])
            .arg(folder.join("check.so"))
            .arg(&source)
            .output()
    });
    // A leftover folder in target/ is harmless, so a failure to remove it is not the user's concern.
    let _ = std::fs::remove_dir_all(&folder);
    match outcome {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().find(|line| !line.trim().is_empty());
            Err(first.unwrap_or("it failed without a message").to_string())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("not found".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let error = compiles("no-such-compiler-here".as_ref(), folder.path()).unwrap_err();
        assert_eq!(error, "not found");
    }

    #[test]
    fn a_program_that_is_no_compiler_is_not_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(compiles("false".as_ref(), folder.path()).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
