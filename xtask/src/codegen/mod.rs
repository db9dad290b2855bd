//! `cargo xtask codegen`: the checked-in bindings of the `-sys` crates, made from the real headers.
//!
//! | step | file |
//! |---|---|
//! | the pinned header packages, fetched without root | [`headers`], from the mirror that [`sources`] finds |
//! | the C parser | [`libclang`] |
//! | headers to Rust types | `bindings` |
//! | foreign functions to a table of optional slots | `table` |
//! | the same functions as a list of signatures | `functions` |
//! | what was generated, as digests | [`record`] |
//!
//! Only the middle steps need the Cargo feature `codegen`; without it the command prepares the inputs and runs itself again with it.

#[cfg(feature = "codegen")]
mod bindings;
#[cfg(feature = "codegen")]
mod functions;
mod headers;
mod libclang;
mod record;
mod sources;
#[cfg(feature = "codegen")]
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

/// The chores' result: a failure is one line that says what to do.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The command a reader is told to run when the bindings are stale.
const COMMAND: &str = "cargo xtask codegen";

/// Tells the process that has the parser where the unpacked headers are.
const HEADERS_VARIABLE: &str = "HIPCL_CODEGEN_HEADERS";

/// Regenerates the bindings of the workspace at `root`, or with `--check` fails when the checked-in ones differ from what
/// the headers give.
pub fn run(root: &Path, args: &[String]) -> Result<()> {
    let check = match args {
        [] => false,
        [option] if option == "--check" => true,
        _ => return Err(format!("`{COMMAND}` takes `--check` or nothing").into()),
    };
    let shell = Shell::new()?;
    let work = target_folder(root).join("codegen");
    #[cfg(feature = "codegen")]
    if let Some(include) = std::env::var_os(HEADERS_VARIABLE) {
        return generate(&shell, root, &work, Path::new(&include), check);
    }
    match Inputs::prepare(&shell, &work) {
        Ok(inputs) => inputs.run_with_parser(&shell, root, check),
        Err(error) if check => {
            println!("codegen: the pinned headers can't be had here: {error}");
            let files = record::verify(root)?;
            println!(
                "codegen: not regenerated; {files} generated files agree with the committed digests"
            );
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// What the generator reads.
struct Inputs {
    /// `usr/include` of the unpacked header packages.
    include: PathBuf,
    /// The folder that holds the `libclang` shared library.
    libclang: PathBuf,
}

impl Inputs {
    fn prepare(shell: &Shell, work: &Path) -> Result<Self> {
        Ok(Self {
            include: headers::unpacked(shell, work)?,
            libclang: libclang::folder(shell, work)?,
        })
    }

    /// bindgen finds its parser through `LIBCLANG_PATH`, which only a parent process can set safely.
    fn run_with_parser(&self, shell: &Shell, root: &Path, check: bool) -> Result<()> {
        println!("codegen: building the generator");
        let _folder = shell.push_dir(root);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // It runs for seconds: optimising the parser costs more than it gains.
        let profile = "profile.dev.package.'*'.opt-level=0";
        let check = check.then_some("--check");
        cmd!(shell, "{cargo} run --quiet --config {profile} --package xtask --features codegen -- codegen {check...}")
            .env("LIBCLANG_PATH", &self.libclang)
            .env(HEADERS_VARIABLE, &self.include)
            .quiet()
            .run()
            .map_err(|_| "codegen failed, see above".into())
    }
}

#[cfg(feature = "codegen")]
fn generate(shell: &Shell, root: &Path, work: &Path, include: &Path, check: bool) -> Result<()> {
    let fresh = bindings::generate(shell, include)?;
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
