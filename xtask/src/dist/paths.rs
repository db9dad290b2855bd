//! Paths of this machine, which no binary of the archive may hold.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// How cargo takes flags that may hold spaces, and what stands between them.
pub const ENCODED_FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const BETWEEN: &str = "\u{1f}";

/// Folders whose files a build reads, each with the name that stands for it in messages of the binaries.
pub struct Paths(Vec<(PathBuf, &'static str)>);

impl Paths {
    /// The workspace, cargo's folder, and the toolchain.
    pub fn of(workspace: &Workspace) -> Result<Self> {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
        let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
        let cargo = cargo.ok_or_else(|| Error::Missing("cargo's folder is unknown; set CARGO_HOME or HOME".into()))?;
        // A later one goes before an earlier one that contains it.
        Ok(Self(vec![
            (workspace.root().to_owned(), "hipcl"),
            (workspace.target().to_owned(), "target"),
            (cargo, "cargo"),
            (sysroot()?, "rust"),
        ]))
    }

    /// The compiler's flags that replace each.
    fn flags(&self) -> impl Iterator<Item = String> {
        let flag = |(path, name): &(PathBuf, &str)| format!("--remap-path-prefix={}={name}", path.display());
        self.0.iter().map(flag)
    }

    /// The value of [`ENCODED_FLAGS`] that adds them to the flags that the environment asks for.
    pub fn encoded_flags(&self) -> OsString {
        let encoded = std::env::var(ENCODED_FLAGS).ok();
        let plain = || {
            Some(
                std::env::var("RUSTFLAGS")
                    .ok()?
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(BETWEEN),
            )
        };
        let given = encoded.or_else(plain).filter(|flags| !flags.is_empty());
        given
            .into_iter()
            .chain(self.flags())
            .collect::<Vec<_>>()
            .join(BETWEEN)
            .into()
    }

    /// Refuses a binary that holds one.
    pub fn refuse(&self, binary: &Path) -> Result<()> {
        let bytes = std::fs::read(binary).map_err(|error| Error::io(binary.display(), error))?;
        match self.first_in(&bytes) {
            None => Ok(()),
            Some(text) => Err(Error::Failed(format!(
                "{} holds a path of this machine: {text}",
                binary.display()
            ))),
        }
    }

    /// The first of them in a binary, with what follows it.
    fn first_in(&self, bytes: &[u8]) -> Option<String> {
        // All are absolute.
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut rests = slashes.map(|(at, _)| &bytes[at..]);
        let found = rests.find(|rest| {
            let mut folders = self.0.iter().map(|(path, _)| path.as_os_str().as_encoded_bytes());
            folders.any(|folder| rest.starts_with(folder) && rest.get(folder.len()) == Some(&b'/'))
        })?;
        let end = found
            .iter()
            .position(|byte| !byte.is_ascii_graphic())
            .unwrap_or(found.len());
        Some(String::from_utf8_lossy(&found[..end.min(200)]).into_owned())
    }
}

/// The folder of the toolchain.
pub fn sysroot() -> Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let output = output.map_err(|error| Error::Missing(format!("cannot start rustc: {error}; install Rust")))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_built_with_the_flags_holds_no_path_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Paths::of(&Workspace::discover().unwrap()).unwrap();
        paths.0.push((folder.path().to_owned(), "folder"));
        let source = folder.path().join("source.rs");
        // A panic of its own, and one of the standard library that is compiled here.
        let code = "#[unsafe(no_mangle)] pub extern \"C\" fn nth(at: usize) -> u8 {\n\
            let mut all: Vec<u8> = std::env::args().map(|text| text.len() as u8).collect();\n\
            assert!(at < 100, \"too far\");\nall.swap_remove(at)\n}\n";
        std::fs::write(&source, code).unwrap();
        let library = folder.path().join("library.so");
        let build = |flags: &[String]| {
            let built = Command::new("rustc")
                .args([
                    "--edition",
                    "2024",
                    "--crate-type",
                    "cdylib",
                    "-C",
                    "strip=debuginfo",
                    "-o",
                ])
                .arg(&library)
                .arg(&source)
                .args(flags)
                .status();
            assert!(built.unwrap().success());
        };
        build(&[]);
        let error = paths.refuse(&library).unwrap_err().to_string();
        assert!(error.contains("source.rs"), "{error}");
        build(&paths.flags().collect::<Vec<_>>());
        paths.refuse(&library).unwrap();
    }

    #[test]
    fn a_path_is_found_wherever_it_stands_and_a_longer_name_is_none() {
        let paths = Paths(vec![("/a/b".into(), "b"), ("/c".into(), "c")]);
        assert_eq!(paths.first_in(b"x/a//a/b/d.rs\0").as_deref(), Some("/a/b/d.rs"));
        assert_eq!(paths.first_in(b"\0/c/").as_deref(), Some("/c/"));
        for other in [&b"/a/bc/d"[..], b"/a/b", b"a/b/", b""] {
            assert_eq!(paths.first_in(other), None);
        }
    }

    #[test]
    fn every_folder_that_a_build_reads_is_replaced() {
        let workspace = Workspace::discover().unwrap();
        let flags = Paths::of(&workspace).unwrap().encoded_flags().into_string().unwrap();
        for folder in [workspace.root(), workspace.target(), &sysroot().unwrap()] {
            let flag = format!("--remap-path-prefix={}=", folder.display());
            assert!(flags.split(BETWEEN).any(|each| each.starts_with(&flag)), "{flags}");
        }
    }
}
