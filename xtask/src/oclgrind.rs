//! `cargo xtask oclgrind`: every OpenCL kernel on a device that checks each access to memory.
//!
//! Oclgrind interprets kernels and reports accesses outside a buffer and data races with their source lines. Its exit
//! status does not show them, so its log must: it must hold a planted error and nothing else. Its check for
//! uninitialized values is left out: Oclgrind 21.10 reports values that went through `fma` of a vector, and gives up at
//! LLVM's `freeze`.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::error::{Error, Result};
use crate::executables::{self, Executable};
use crate::setup::download_packages;
use crate::test::CRATES;
use crate::workspace::{Workspace, cargo};

/// The crates with OpenCL kernels. Each has a test program that runs all of them on small data.
const PACKAGES: [&str; 4] = ["clmgr", "clmgr-fft", "interop", "hipcl"];
const PROGRAM: &str = "kernels";

/// The test whose kernel leaves its buffer.
const PLANTED: (&str, &str) = ("clmgr", "a_kernel_that_leaves_its_buffer_is_reported");

/// # Errors
/// [`Error::Missing`] if Oclgrind is unavailable here; [`Error::Failed`] with its report.
pub fn run(workspace: &Workspace) -> Result<()> {
    let sh = workspace.shell()?;
    let folder = workspace.target().join("oclgrind");
    let tree = unpacked(&sh, &folder).map_err(|reason| Error::Missing(format!("no Oclgrind: {reason}")))?;
    let programs = built(&sh)?;
    let checker = Checker {
        library: tree.join("usr/lib/oclgrind/liboclgrind-rt.so"),
        libraries: tree.join("usr/lib/x86_64-linux-gnu"),
        log: folder.join("log"),
    };
    let program = |package: &str| {
        let found = programs.iter().find(|program| program.crate_name() == package);
        found.ok_or_else(|| Error::Failed(format!("cargo built no test program {PROGRAM} of {package}")))
    };
    let (package, test) = PLANTED;
    let found = checker.run(&sh, program(package)?, &["--ignored", "--exact", test])?;
    if !found.contains("Invalid write") {
        return Err(Error::Failed(format!(
            "Oclgrind does not report the planted error: {found:?}"
        )));
    }
    for package in PACKAGES {
        let found = checker.run(&sh, program(package)?, &[])?;
        if !found.trim().is_empty() {
            return Err(Error::Failed(format!(
                "Oclgrind reported problems in the kernels of {package}:\n{found}"
            )));
        }
        println!("Oclgrind reported no problem in the kernels of {package}");
    }
    Ok(())
}

/// Builds the test programs as `cargo xtask test` does, so that neither builds the workspace anew: each selection of
/// packages has its own features.
fn built(sh: &Shell) -> Result<Vec<Executable>> {
    let (cargo, crates) = (cargo(), CRATES);
    let messages = cmd!(
        sh,
        "{cargo} test --quiet {crates...} --test {PROGRAM} --no-run --message-format json"
    )
    .quiet()
    .read()?;
    Ok(executables::read(&messages)
        .filter(|built| built.name == PROGRAM)
        .collect())
}

struct Checker {
    library: PathBuf,
    libraries: PathBuf,
    log: PathBuf,
}

impl Checker {
    /// Runs a test program; returns what Oclgrind wrote.
    fn run(&self, sh: &Shell, program: &Executable, args: &[&str]) -> Result<String> {
        match fs::remove_file(&self.log) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(self.log.display(), error));
            }
            _ => {}
        }
        let executable = &program.path;
        let _folder = sh.push_dir(&program.folder);
        cmd!(sh, "{executable} --test-threads=1 {args...}")
            .env("HIPCL_OPENCL", &self.library)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env("OCLGRIND_PCH_DIR", self.headers()?)
            .env("OCLGRIND_DATA_RACES", "1")
            .env("OCLGRIND_UNIFORM_WRITES", "1")
            .env("OCLGRIND_LOG", &self.log)
            .quiet()
            .run()
            .map_err(|_| Error::Failed(format!("{} fails, see above", executable.display())))?;
        fs::read_to_string(&self.log).map_err(|error| Error::io(self.log.display(), error))
    }

    /// The folder of precompiled headers, which is named after the version.
    fn headers(&self) -> Result<PathBuf> {
        let parent = self.libraries.join("oclgrind");
        let describe = |error| Error::io(parent.display(), error);
        for entry in fs::read_dir(&parent).map_err(describe)? {
            let folder = entry.map_err(describe)?.path();
            if folder.join("opencl-c.h").exists() {
                return Ok(folder);
            }
        }
        Err(Error::Missing(format!(
            "no OpenCL headers in {}; remove the folder, and run the task again",
            parent.display()
        )))
    }
}

/// The folder with Oclgrind and what it needs, from the distribution's packages.
fn unpacked(sh: &Shell, folder: &Path) -> std::result::Result<PathBuf, String> {
    let tree = folder.join("tree");
    // Written last, so an interrupted run begins anew.
    let record = folder.join("complete");
    if record.exists() {
        return Ok(tree);
    }
    let text = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(text)?;
    }
    fs::create_dir_all(&tree).map_err(text)?;
    println!("fetching Oclgrind (80 MB with its compiler)");
    for deb in download_packages(sh, folder, &["oclgrind"])? {
        cmd!(sh, "dpkg-deb -x {deb} {tree}")
            .quiet()
            .run()
            .map_err(|error| error.to_string())?;
    }
    fs::remove_dir_all(folder.join("apt")).map_err(text)?;
    fs::write(&record, "").map_err(text)?;
    Ok(tree)
}
