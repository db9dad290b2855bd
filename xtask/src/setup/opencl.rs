//! Finds an OpenCL runtime, in the order in which `clmgr` looks, and installs one when there is none.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{Machine, Wish, debian, install, probe, wheels};
use crate::error::{Error, Result};

/// The folder in `target/` that `clmgr` searches upwards for.
pub const FOLDER: &str = "hipcl-opencl";

const BY_HAND: &str = "install a runtime yourself (Debian, Ubuntu: `apt install pocl-opencl-icd`; Fedora: \
    `dnf install pocl`; Arch: `pacman -S pocl`), or set HIPCL_OPENCL to an OpenCL library";

/// A runtime that can be installed without root.
pub struct Source {
    name: &'static str,
    about: &'static str,
    icd: &'static str,
    fill: install::Fill,
}

/// In trial order.
static SOURCES: [Source; 2] = [
    Source {
        name: "intel",
        about: "Intel's CPU runtime from PyPI",
        icd: "intel-cpu.icd",
        fill: wheels::fill,
    },
    Source {
        name: "pocl",
        about: "PoCL from the packages of the distribution",
        icd: "pocl-cpu.icd",
        fill: debian::fill,
    },
];

/// The runtime of that name.
pub fn source(name: &str) -> Result<&'static Source> {
    SOURCES
        .iter()
        .find(|source| source.name == name)
        .ok_or_else(|| Error::Usage(format!("unknown runtime {name:?}; use intel or pocl")))
}

/// Leaves the machine with a runtime that has compiled and run a kernel, or returns what is missing.
pub fn ensure(machine: &Machine<'_>, wish: Wish) -> Result<()> {
    if let Some(path) = std::env::var_os("HIPCL_OPENCL").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let found = probe::in_child(&path).map_err(|reason| {
            Error::Missing(format!(
                "HIPCL_OPENCL names {}, which does not work: {reason}; correct or unset it",
                path.display()
            ))
        })?;
        println!("OpenCL: {found} (HIPCL_OPENCL)");
        return Ok(());
    }
    if matches!(wish, Wish::Any) {
        for name in ["libOpenCL.so.1", "libOpenCL.so"] {
            match probe::in_child(Path::new(name)) {
                Ok(found) => {
                    println!("OpenCL: {found} (the system's {name})");
                    return Ok(());
                }
                Err(reason) => println!("OpenCL: the system's {name}: {reason}"),
            }
        }
    }
    let target = machine.workspace.target();
    let folder = target.join(FOLDER);
    let _lock = lock(target)?;
    let sources: Vec<&Source> = match wish {
        Wish::Named(source) => vec![source],
        Wish::Any | Wish::Local => SOURCES.iter().collect(),
    };
    match installed(&folder, &sources) {
        Ok(found) => println!("OpenCL: {found} (in {})", folder.display()),
        Err(reason) => {
            println!("OpenCL: {}: {reason}", folder.display());
            let found = install_one(machine, &folder, &sources)?;
            println!("OpenCL: {found} (installed in {})", folder.display());
        }
    }
    Ok(())
}

/// The driver of this runtime in a separate folder, which no program finds by itself: for a test run on that runtime.
pub fn beside(machine: &Machine<'_>, source: &'static Source) -> Result<PathBuf> {
    let target = machine.workspace.target();
    let folder = target.join(format!("{FOLDER}-{}", source.name));
    let _lock = lock(target)?;
    let found = match installed(&folder, &[source]) {
        Ok(found) => found,
        Err(_) => install_one(machine, &folder, &[source])?,
    };
    println!("OpenCL: {found} (in {})", folder.display());
    install::driver(&folder, source.icd).ok_or_else(|| Error::Failed(format!("{} names no driver", folder.display())))
}

/// Held while the folder is read or written, so two set-ups at once install one runtime.
fn lock(target: &Path) -> Result<File> {
    std::fs::create_dir_all(target).map_err(|error| Error::io(target.display(), error))?;
    let path = target.join(format!("{FOLDER}.lock"));
    let file = File::create(&path).map_err(|error| Error::io(path.display(), error))?;
    if file.try_lock().is_err() {
        println!("OpenCL: waiting for another setup");
        file.lock().map_err(|error| Error::io(path.display(), error))?;
    }
    Ok(file)
}

/// The first driver named in the folder that works and comes from one of the sources.
fn installed(folder: &Path, sources: &[&Source]) -> std::result::Result<String, String> {
    let mut reasons = Vec::new();
    for source in sources {
        let Some(driver) = install::driver(folder, source.icd) else {
            continue;
        };
        match probe::in_child(&driver) {
            Ok(found) => return Ok(found),
            Err(reason) => reasons.push(format!("{}: {reason}", driver.display())),
        }
    }
    if reasons.is_empty() {
        return Err("nothing installed yet".into());
    }
    Err(reasons.join("; "))
}

fn install_one(machine: &Machine<'_>, folder: &Path, sources: &[&Source]) -> Result<String> {
    let mut tried = Vec::new();
    for source in sources {
        println!("OpenCL: trying {}", source.about);
        match install::into(folder, source.icd, |partial| (source.fill)(machine, partial)) {
            Ok(found) => return Ok(found),
            Err(reason) => {
                println!("OpenCL: {}: {reason}", source.about);
                tried.push(format!("{}: {reason}", source.about));
            }
        }
    }
    Err(Error::Missing(format!(
        "no OpenCL runtime: {}; {BY_HAND}",
        tried.join("; ")
    )))
}
