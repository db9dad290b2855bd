//! `cargo xtask symbols --refresh`: reads the symbol lists anew from the pinned library packages.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xshell::{Shell, cmd};

use super::elf::Exports;
use super::list::{self, SymbolList};
use crate::codegen::Result;
use crate::codegen::archive::Archive;
use crate::codegen::releases::{Library, RELEASES};

/// The beginnings of the C names that the libraries' headers declare; everything else is internal.
const PREFIXES: [&str; 7] = ["hip", "__hip", "hsa_", "rocblas_", "rocsolver_", "nccl", "msccl"];

/// Renews every list. Packages and unpacked libraries are removed again one by one: together they are gigabytes.
pub fn run(root: &Path, work: &Path) -> Result<()> {
    let shell = Shell::new()?;
    for release in &RELEASES {
        let Some(suite) = release.suite() else {
            continue;
        };
        for library in release.libraries {
            let package = &library.package;
            let fetched = Archive::new(&shell, work, suite).fetch(std::slice::from_ref(package))?;
            let [file] = fetched.as_slice() else {
                return Err("one package was asked for".into());
            };
            let unpacked = unpack(&shell, work, library, file)?;
            let exports = Exports::of_file(&unpacked);
            fs::remove_file(&unpacked)?;
            fs::remove_file(file)?;
            let mut functions = exports?.functions;
            functions.retain(|name, _| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
            let list = SymbolList {
                source: list::source(package),
                functions,
            };
            let path = list.write(root, library.name, package)?;
            println!(
                "symbols: {} functions in {} -> {}",
                list.functions.len(),
                list.source,
                path.display()
            );
        }
    }
    Ok(())
}

/// Takes the one library out of the package, without unpacking the rest.
fn unpack(shell: &Shell, work: &Path, library: &Library, package: &Path) -> Result<PathBuf> {
    let listing = cmd!(shell, "dpkg-deb -c {package}").quiet().read()?;
    let member =
        member(&listing, library.file).ok_or_else(|| format!("{} has no {}.so", package.display(), library.file))?;
    let target = work.join("library.so");
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()?;
    let stream = archive.stdout.take().ok_or("the archive has no output")?;
    let unpacked = Command::new("tar")
        .args(["-xO", member])
        .stdin(stream)
        .stdout(File::create(&target)?)
        .status()?;
    // `tar` may stop reading once it has the member, which then ends `dpkg-deb`: only the former's status tells.
    archive.wait()?;
    if !unpacked.success() {
        return Err(format!("cannot unpack {member} of {}", package.display()).into());
    }
    Ok(target)
}

/// The regular file (not the links to it) whose name is `file` and a version.
fn member<'a>(listing: &'a str, file: &str) -> Option<&'a str> {
    let wanted = format!("/{file}.so.");
    listing
        .lines()
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| line.split_whitespace().next_back())
        .find(|path| path.contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_taken_and_not_the_links_to_it() {
        let listing = "drwxr-xr-x root/root 0 2026-01-01 00:00 ./usr/lib/\n\
             lrwxrwxrwx root/root 0 2026-01-01 00:00 ./usr/lib/libx.so.4 -> libx.so.4.4\n\
             -rw-r--r-- root/root 9 2026-01-01 00:00 ./usr/lib/libx-builtins.so.4.4\n\
             -rw-r--r-- root/root 9 2026-01-01 00:00 ./usr/lib/libx.so.4.4\n";
        assert_eq!(member(listing, "libx"), Some("./usr/lib/libx.so.4.4"));
        assert_eq!(member(listing, "liby"), None);
    }
}
