//! Where the library is, and C compilers.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Names a file that takes a line for each test that could not run (see `cargo xtask test`).
const SKIP_LOG: &str = "HIPCL_SKIP_LOG";

/// The crate's folder.
pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header's folder.
pub fn include() -> PathBuf {
    crate_folder().join("include")
}

/// The static library, which cargo builds beside this program for each selection of features: the newest.
fn archive() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().expect("a folder");
    let files = fs::read_dir(folder).expect("the folder of this program");
    let built = files.filter_map(|file| {
        let file = file.ok()?;
        let name = file.file_name().into_string().ok()?;
        let is_ours = name.starts_with("libhipcl_c-") && name.ends_with(".a");
        is_ours.then_some((file.metadata().ok()?.modified().ok()?, file.path()))
    });
    let newest = built.max_by_key(|(modified, _)| *modified);
    newest.expect("cargo builds libhipcl_c-HASH.a with this program").1
}

/// A folder with the libraries under the names that `cargo xtask capi` gives them.
pub fn libraries() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = scratch().join("lib");
        fs::create_dir_all(&folder).expect("a folder");
        let archive = archive();
        // Not in place: a program of an earlier run may still use it.
        let (new, library) = (folder.join("libhipcl.new"), folder.join("libhipcl.so.0"));
        let mut link = Command::new(crate_folder().join("package/link.sh"));
        success(
            link.arg(&archive).arg(&new).output().expect("the script starts"),
            "libhipcl.so.0",
        );
        fs::rename(&new, &library).expect("the library");
        for (file, name) in [(&library, "libhipcl.so"), (&archive, "libhipcl.a")] {
            let link = folder.join(name);
            let _ = fs::remove_file(&link);
            symlink(file, &link).expect("a link");
        }
        folder
    });
    &FOLDER
}

/// A folder for what tests write.
pub fn scratch() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
        fs::create_dir_all(&folder).expect("a folder");
        folder
    });
    &FOLDER
}

/// A language and a compiler for it.
#[derive(Clone, Copy)]
pub struct Compiler {
    pub program: &'static str,
    pub language: &'static str,
    pub standard: &'static str,
}

pub const C: Compiler = Compiler {
    program: "gcc",
    language: "c",
    standard: "-std=c11",
};
pub const CPP: Compiler = Compiler {
    program: "g++",
    language: "c++",
    standard: "-std=c++17",
};
pub const CPP23: Compiler = Compiler {
    standard: "-std=c++23",
    ..CPP
};
pub const CLANG: Compiler = Compiler { program: "clang", ..C };
pub const CLANGPP: Compiler = Compiler {
    program: "clang++",
    ..CPP
};
/// Every C compiler that a test tries, and every C++ compiler.
pub const C_COMPILERS: [Compiler; 2] = [C, CLANG];
pub const CPP_COMPILERS: [Compiler; 2] = [CPP, CLANGPP];

impl Compiler {
    /// The compiler with its strictest warnings as errors.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.program);
        command
            .args([self.standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread"])
            .arg("-I")
            .arg(include())
            .args(["-x", self.language]);
        command
    }

    /// Compiles and links a program with the shared library, or with the static one.
    pub fn program(self, source: &Path, name: &str, linked: Linked) -> PathBuf {
        self.program_with(&[], source, name, linked)
    }

    /// As [`program`](Self::program), with further options.
    pub fn program_with(self, options: &[&str], source: &Path, name: &str, linked: Linked) -> PathBuf {
        let program = scratch().join(name);
        let mut command = self.command();
        command
            .arg("-D_GNU_SOURCE")
            .args(options)
            .arg(source)
            .args(["-x", "none", "-o"])
            .arg(&program);
        match linked {
            Linked::Shared => command
                .arg("-L")
                .arg(libraries())
                .arg("-lhipcl")
                .arg(format!("-Wl,-rpath,{}", libraries().display())),
            Linked::Static => command.arg(libraries().join("libhipcl.a")),
        };
        success(
            command
                .args(["-lm", "-ldl", "-pthread"])
                .output()
                .expect("the compiler starts"),
            name,
        );
        program
    }
}

/// How a program gets the library.
#[derive(Clone, Copy)]
pub enum Linked {
    Shared,
    Static,
}

/// A program on the platform that `HIPCL_PLATFORM` names, the software device if it names none.
pub fn on_platform(program: &mut Command) -> &mut Command {
    if std::env::var_os("HIPCL_PLATFORM").is_none() {
        program.env("HIPCL_PLATFORM", "host");
    }
    program
}

/// Runs a program.
pub fn run(program: &mut Command, name: &str) -> String {
    let output = on_platform(program).output();
    success(output.expect("a program that was just compiled starts"), name)
}

fn success(output: Output, name: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}\n{errors}", output.status);
    text
}

pub fn available(tool: &str) -> bool {
    let output = Command::new(tool).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

pub fn skip(test: &str, reason: &str) {
    eprintln!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os(SKIP_LOG) {
        let log = fs::File::options().create(true).append(true).open(path);
        // In one piece: other tests write to it too.
        let line = format!("{test}: {reason}\n");
        let written = log.and_then(|mut log| log.write_all(line.as_bytes()));
        written.expect("the skip log can be written");
    }
}
