//! The C programs that hold the software device's C interface, compiled against AMD's own headers and run with AMD's
//! libraries on the emulator.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::build::Program;
use super::emulated::{Emulator, INSIDE};
use crate::error::{Error, Result};

/// The package that has them.
pub const PACKAGE: &str = "hip-host-capi";

const LIBRARIES: [&str; 5] = ["amdhip64", "hiprtc", "rocblas", "rocsolver", "hsa-runtime64"];

/// Compiles every program inside; the set-up needs g++ and the headers of HIP, HSA, rocBLAS and rocSOLVER.
///
/// # Errors
/// If the set-up lacks these, with what the compiler says.
pub fn compile(emulator: &Emulator, sources: &Path) -> Result<Vec<Program>> {
    let inside = Path::new(INSIDE).join("c");
    let folder = emulator.outside(&inside);
    fs::create_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(sources).map_err(|error| Error::io(sources.display(), error))? {
        let path = entry.map_err(|error| Error::io(sources.display(), error))?.path();
        let file = path.file_name().unwrap_or_default();
        fs::copy(&path, folder.join(file)).map_err(|error| Error::io(path.display(), error))?;
        if path.extension().is_some_and(|extension| extension == "cpp") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    names
        .into_iter()
        .map(|name| compile_one(emulator, &inside, name))
        .collect()
}

fn compile_one(emulator: &Emulator, folder: &Path, name: String) -> Result<Program> {
    let program = folder.join(&name);
    let mut compiler = Command::new("chroot");
    compiler.arg(emulator.outside(Path::new("/")));
    compiler.args(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "g++"]);
    compiler.args(["-std=c++17", "-O1", "-w", "-DON_ROCM", "-D__HIP_PLATFORM_AMD__"]);
    compiler.arg(program.with_extension("cpp")).arg("-o").arg(&program);
    compiler
        .args(LIBRARIES.map(|library| format!("-l{library}")))
        .arg("-pthread");
    let output = compiler.output();
    let output = output.map_err(|error| Error::io("cannot start chroot", error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Missing(format!(
            "{name}.cpp does not compile in the setup, which needs g++ and the headers of HIP, HSA, rocBLAS and rocSOLVER: {}",
            said.lines().next().unwrap_or_default()
        )));
    }
    Ok(Program {
        package: PACKAGE.into(),
        path: emulator.outside(&program),
        name,
    })
}
