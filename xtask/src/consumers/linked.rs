//! The consumer that lets the dynamic linker find HIP: it is built with libraries made here, and run.

use std::fs;
use std::path::Path;

use xshell::{Shell, cmd};

use crate::error::{Error, Result};
use crate::workspace::cargo;

/// Its folder.
pub const NAME: &str = "hip-sys-linked";

/// A HIP with two functions, of which one answers as on a machine without a GPU. All the others are absent, as the
/// functions of a newer release are.
const HIP: &str = "int hipGetDeviceCount(int *n) { *n = 0; return 100; } int hipFree(void *p) { return !!p; }";
const HIPRTC: &str = "int hiprtcCompileProgram(void) { return 1; }";

/// What the program has to print.
const EXPECTED: [&str; 4] = [
    "lib/libamdhip64.so.6",
    "lib/libhiprtc.so.6",
    "functions 2 1",
    "status hipErrorNoDevice (100)",
];

pub fn run(sh: &Shell, target: &Path) -> Result<()> {
    let rocm = target.join("consumers-rocm");
    let lib = rocm.join("lib");
    library(sh, &lib, "libamdhip64.so", HIP)?;
    library(sh, &lib, "libhiprtc.so", HIPRTC)?;
    let cargo = cargo();
    // A folder of its own: with this ROCM_PATH the other consumers' build scripts would run again each time.
    let own = target.join("consumers-linked");
    let output = cmd!(sh, "{cargo} run --quiet --package consumer-{NAME} --target-dir {own}")
        .env("ROCM_PATH", &rocm)
        .env("LD_LIBRARY_PATH", &lib)
        .quiet()
        .read()
        .map_err(|_| Error::Failed(format!("ci/consumers/{NAME} does not run, see above")))?;
    for part in EXPECTED {
        if !output.contains(part) {
            return Err(Error::Failed(format!(
                "ci/consumers/{NAME} does not print {part:?}; it prints:\n{output}"
            )));
        }
    }
    println!("{NAME}: builds, starts with a library that lacks functions, and finds the others");
    Ok(())
}

/// The versioned file that the dynamic linker looks for, and under its plain name what the linker looks for.
fn library(sh: &Shell, folder: &Path, name: &str, source: &str) -> Result<()> {
    let versioned = format!("{name}.6");
    let (text, file, link) = (
        folder.join(format!("{name}.c")),
        folder.join(&versioned),
        folder.join(name),
    );
    fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
    fs::write(&text, source).map_err(|error| Error::io(text.display(), error))?;
    cmd!(sh, "cc -shared -fPIC -Wl,-soname,{versioned} -o {file} {text}")
        .quiet()
        .run()
        .map_err(|_| Error::Missing("no working C compiler; install gcc".into()))?;
    fs::copy(&file, &link).map_err(|error| Error::io(link.display(), error))?;
    Ok(())
}
