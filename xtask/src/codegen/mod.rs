//! `cargo xtask codegen`: the checked-in bindings of the `-sys` crates, made from the real headers.
//!
//! | step | file |
//! |---|---|
//! | the releases and their pinned packages | [`releases`] |
//! | the tables and their libraries | [`tables`] |
//! | the packages, fetched without root | [`archive`], from the mirror that [`sources`] finds |
//! | the headers of each release in a folder of its own | [`headers`] |
//! | headers made again from AMD's bindings for Python | [`wheels`], [`pxd`] |
//! | the C parser | [`libclang`] |
//! | headers to Rust types, for each release | `bindings`, taken apart by `parsed` |
//! | the releases as one set of declarations | `merge`, `forms`, which ask `layout` and `abi` what agrees |
//! | types and enums as source | `render` |
//! | functions as a list of declarations, each with its releases | `functions`, `since` |
//! | long lines | `wrap` |
//! | each release's declarations as text | `facts` |
//! | Khronos' headers to OpenCL's table of functions | [`opencl`] |
//! | the C library's own header | `c_header` |
//! | what was generated, as digests | [`record`] |
//!
//! Only the middle steps need the Cargo feature `codegen`; without it the command prepares the inputs and runs itself
//! again with it.

#[cfg(feature = "codegen")]
mod abi;
pub mod archive;
#[cfg(feature = "codegen")]
mod bindings;
#[cfg(feature = "codegen")]
mod c_header;
#[cfg(feature = "codegen")]
mod facts;
#[cfg(feature = "codegen")]
mod forms;
#[cfg(feature = "codegen")]
mod functions;
mod headers;
#[cfg(feature = "codegen")]
mod layout;
mod libclang;
#[cfg(feature = "codegen")]
mod merge;
mod opencl;
#[cfg(feature = "codegen")]
mod parsed;
mod pxd;
mod record;
pub mod releases;
#[cfg(feature = "codegen")]
mod render;
#[cfg(feature = "codegen")]
mod since;
pub mod sources;
pub mod tables;
mod wheels;
#[cfg(feature = "codegen")]
mod wrap;

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use releases::RELEASES;
use xshell::{Shell, cmd};

use crate::symbols;

/// The chores' result: a failure is one line that says what to do.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The command to run when the bindings are stale.
const COMMAND: &str = "cargo xtask codegen";

/// The generator runs for seconds: optimising it costs more than it gains, but for the name patterns that its parser
/// tries on every declaration.
pub const PROFILE: [&str; 4] = [
    "--config",
    "profile.dev.package.'*'.opt-level=0",
    "--config",
    "profile.dev.package.regex-automata.opt-level=2",
];

/// Tells the process that has the parser the releases whose headers are unpacked, and whether OpenCL's are.
const PREPARED_VARIABLE: &str = "HIPCL_CODEGEN_PREPARED";

/// Whether to write.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Options {
    /// Write nothing, and fail on a difference
    #[arg(long)]
    pub check: bool,
    /// Only the header of the C library, which needs nothing that is fetched
    #[arg(long)]
    pub header: bool,
}

/// Regenerates the bindings of the workspace at `root`, or with `--check` fails when the checked-in ones differ from
/// what the headers give.
///
/// A release whose packages have left the archive can only be checked by the committed facts and digests; `--check`
/// says which.
pub fn run(root: &Path, Options { check, header }: Options) -> Result<()> {
    let shell = Shell::new()?;
    let work = work_folder(root);
    if header {
        return only_header(&shell, root, &work, check);
    }
    #[cfg(feature = "codegen")]
    if let Ok(prepared) = std::env::var(PREPARED_VARIABLE) {
        let prepared: Vec<&str> = prepared.split(',').collect();
        return generate(&shell, root, &work, &prepared, check);
    }
    if check {
        symbols::check::run(root)?;
    }
    let mut prepared = Vec::new();
    for release in &RELEASES {
        match headers::unpack(&shell, &work, release) {
            Ok(()) => prepared.push(release.name),
            Err(error) if check => {
                println!("codegen: no headers of ROCm {}: {error}", release.name);
            }
            Err(error) => {
                return Err(format!("no headers of ROCm {}: {error}", release.name).into());
            }
        }
    }
    match opencl::unpack(&shell, &work) {
        Ok(()) => prepared.push(opencl::NAME),
        Err(error) if check => println!("codegen: no headers of OpenCL: {error}"),
        Err(error) => return Err(format!("no headers of OpenCL: {error}").into()),
    }
    let parser = match libclang::folder(&shell, &work) {
        Ok(folder) if !prepared.is_empty() => Some(folder),
        Ok(_) => None,
        Err(error) if check => {
            println!("codegen: no parser: {error}");
            None
        }
        Err(error) => return Err(error),
    };
    match parser {
        Some(libclang) => run_with_parser(&shell, root, &libclang, &prepared, check),
        None => verify(root),
    }
}

/// The C library's header alone.
#[cfg(feature = "codegen")]
fn only_header(_shell: &Shell, root: &Path, work: &Path, check: bool) -> Result<()> {
    let header = c_header::generate(root)?;
    if !check {
        return record::update(root, &header);
    }
    record::compare_some(root, work, &[header])?;
    verify(root)
}

/// As above, by this program with the parser.
#[cfg(not(feature = "codegen"))]
fn only_header(shell: &Shell, root: &Path, _work: &Path, check: bool) -> Result<()> {
    let mut task = vec!["codegen", "--header"];
    task.extend(check.then_some("--check"));
    rerun_with_feature(shell, root, &task, &[])
}

/// What can be checked without regenerating anything.
fn verify(root: &Path) -> Result<()> {
    let files = record::verify(root)?;
    println!("codegen: not regenerated; {files} generated files match the committed digests");
    Ok(())
}

/// bindgen finds its parser through `LIBCLANG_PATH`, which only a parent process can set safely.
fn run_with_parser(shell: &Shell, root: &Path, libclang: &Path, prepared: &[&str], check: bool) -> Result<()> {
    let mut task = vec!["codegen"];
    task.extend(check.then_some("--check"));
    let prepared = prepared.join(",");
    let environment = [
        ("LIBCLANG_PATH", libclang.as_os_str()),
        (PREPARED_VARIABLE, OsStr::new(&prepared)),
    ];
    rerun_with_feature(shell, root, &task, &environment)
}

/// Builds this program with the Cargo feature `codegen` and has it do the task.
pub fn rerun_with_feature(shell: &Shell, root: &Path, task: &[&str], environment: &[(&str, &OsStr)]) -> Result<()> {
    println!("codegen: building the generator");
    let _folder = shell.push_dir(root);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    cmd!(
        shell,
        "{cargo} run --quiet {PROFILE...} --package xtask --features codegen -- {task...}"
    )
    .envs(environment.iter().copied())
    .quiet()
    .run()
    .map_err(|_| format!("`cargo xtask {}` failed, see above", task.join(" ")).into())
}

/// Where downloads and unpacked files are kept.
pub fn work_folder(root: &Path) -> PathBuf {
    target_folder(root).join("codegen")
}

#[cfg(feature = "codegen")]
fn generate(shell: &Shell, root: &Path, work: &Path, prepared: &[&str], check: bool) -> Result<()> {
    let opencl = if prepared.contains(&opencl::NAME) {
        opencl::generate(shell, work)?
    } else {
        Vec::new()
    };
    let header = c_header::generate(root)?;
    // The releases and OpenCL.
    if prepared.len() < RELEASES.len() + 1 {
        let mut some = bindings::facts(shell, work, prepared)?;
        some.extend(opencl);
        some.push(header);
        record::compare_some(root, work, &some)?;
        return verify(root);
    }
    let mut fresh = bindings::generate(shell, root, work)?;
    fresh.extend(opencl);
    fresh.push(header);
    if check {
        record::compare(root, work, &fresh)
    } else {
        record::write(root, &fresh)
    }
}

/// Cargo marks the target folders that it makes with `CACHEDIR.TAG`; this program runs from inside one.
fn target_folder(root: &Path) -> PathBuf {
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR") {
        return root.join(folder);
    }
    let marked = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    std::env::current_exe()
        .ok()
        .and_then(|exe| exe.ancestors().find(marked).map(Path::to_path_buf))
        .unwrap_or_else(|| root.join("target"))
}
