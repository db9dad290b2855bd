//! Compiling and running one C program.

mod library;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names a file that takes a line for each test that could not run (see `cargo xtask test`).
const SKIP_LOG: &str = "HIPCL_SKIP_LOG";

/// The processor that kernels are compiled for under valgrind, which knows no AVX-512.
const VALGRIND_MARCH: &str = "x86-64-v3";

/// A source file in `tests/c`.
pub struct Program {
    source: &'static str,
}

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Plain,
    /// Under valgrind's memory checker; an invalid access or a lost block fails.
    Valgrind,
}

impl Program {
    pub fn new(source: &'static str) -> Self {
        Self { source }
    }

    /// Compiles and runs the program with these environment variables; it must end with 0.
    pub fn run(&self, test: &str, run: Run, environment: &[(&str, &str)]) {
        let Some(headers) = headers() else {
            return skip(test, "no ROCm headers; `cargo xtask codegen` fetches them");
        };
        if run == Run::Valgrind && !available("valgrind") {
            return skip(test, "no valgrind");
        }
        if !available("g++") {
            return skip(test, "no g++");
        }
        let program = self.compile(test, &headers);
        let mut command = match run {
            Run::Plain => Command::new(&program),
            Run::Valgrind => {
                let mut command = Command::new("valgrind");
                command
                    .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
                    .args(["--errors-for-leak-kinds=definite", "--trace-children=no"])
                    .args(["--show-leak-kinds=definite", "--num-callers=30"])
                    .env("HIP_HOST_MARCH", VALGRIND_MARCH)
                    .arg(&program);
                command
            }
        };
        let output = command
            .envs(environment.iter().copied())
            .output()
            .expect("a program that was just compiled starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{test}: {}\n{errors}", output.status);
    }

    fn compile(&self, test: &str, headers: &Path) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let library = library::folder();
        let output = Command::new("g++")
            .args([
                "-std=c++17",
                "-g",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-deprecated-declarations",
            ])
            .args(["-D__HIP_PLATFORM_AMD__", "-isystem"])
            .arg(headers)
            .arg(sources.join(self.source))
            .arg("-o")
            .arg(&program)
            .arg(library.join("libhip_host.so"))
            .arg(format!("-Wl,-rpath,{}", library.display()))
            .arg("-pthread")
            .output()
            .expect("g++ starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{errors}", self.source);
        program
    }
}

/// The include folder of the unpacked header packages.
fn headers() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let folder = target.join("codegen/headers/6.4/usr/include");
    folder.join("hip/hip_runtime_api.h").exists().then_some(folder)
}

fn available(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn skip(test: &str, reason: &str) {
    eprintln!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        let log = std::fs::File::options().create(true).append(true).open(path);
        // In one piece: other tests write to it too.
        let line = format!("{test}: {reason}\n");
        let written = log.and_then(|mut log| log.write_all(line.as_bytes()));
        written.expect("the skip log can be written");
    }
}
