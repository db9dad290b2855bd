//! Programs on a GPU that AMD's emulator rocjitsu plays, under AMD's own libraries.
//!
//! The set-up is a folder, made by `ci/emulated/`: `root`, a system with ROCm, rocjitsu in `usr/local/rj`, and
//! configurations of GPUs in `cfg`. A program runs inside by `chroot`, which takes root's rights.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;

use super::plan::Able;
use crate::error::{Error, Result};

/// The default limit: an emulated GPU is thousands of times slower than a card.
pub const LIMIT: Duration = Duration::from_secs(400);

/// The GPU that is emulated unless another is named: an MI100 of 8 compute units, which starts faster than one of 120.
const GPU: &str = "gfx908s";

/// The divisor for the lengths of tests with long kernels.
const SLOWER: &str = "100";

/// How many cases each random test has.
const CASES: &str = "8";

/// Where the suite lies inside: programs in `bin`, and in `examples` those that tests start.
pub const INSIDE: &str = "/opt/hipcl-suite";

#[derive(Clone)]
pub struct Emulator {
    root: PathBuf,
    gpu: String,
    /// Whether a process of its own plays the GPU, so that several processes use the same one. Otherwise each plays its
    /// own, which starts faster.
    is_shared: bool,
}

impl Emulator {
    /// The emulator in `folder`, playing the GPU of this name.
    ///
    /// # Errors
    /// [`Error::Missing`] for what the folder lacks, with what is there.
    pub fn at(folder: &Path, gpu: Option<&str>) -> Result<Self> {
        let root = folder.join("root");
        let gpu = gpu.unwrap_or(GPU);
        let missing = |what: String| {
            Err(Error::Missing(format!(
                "{what}; set up the emulator as ci/README.md describes, and pass its folder to --emulated"
            )))
        };
        if !root.join("usr/local/rj/bin/rocjitsu").is_file() {
            return missing(format!("{} contains no emulator", folder.display()));
        }
        if !root.join(format!("cfg/{gpu}.json")).is_file() {
            let known = names(&root.join("cfg")).join(", ");
            return missing(format!("no GPU named {gpu:?} is configured, only {known}"));
        }
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !is_root {
            return Err(Error::Missing(
                "the emulated system is entered with chroot; run this as root".into(),
            ));
        }
        for part in ["bin", "examples"] {
            let folder = root.join(&INSIDE[1..]).join(part);
            fs::create_dir_all(&folder).map_err(|error| Error::io(folder.display(), error))?;
        }
        Ok(Self {
            root,
            gpu: gpu.to_owned(),
            is_shared: false,
        })
    }

    /// The same GPU for programs that start other processes to use it.
    pub fn shared(&self) -> Self {
        Self {
            is_shared: true,
            ..self.clone()
        }
    }

    /// The name of its configuration.
    pub fn gpu(&self) -> &str {
        &self.gpu
    }

    /// What the emulated GPU is good for.
    pub fn able(&self) -> Able {
        Able {
            has_peer: self.gpu.ends_with("x2"),
        }
    }

    /// Where a path of the system inside lies.
    pub fn outside(&self, inside: &Path) -> PathBuf {
        self.root.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// What runs `command` inside: a copy of its program, with its arguments and variables.
    ///
    /// # Errors
    /// If the program cannot be copied.
    pub fn command(&self, command: &Command) -> Result<Command> {
        let program = Path::new(command.get_program());
        let name = program.file_name().unwrap_or_default();
        let inside = Path::new(INSIDE).join("bin").join(name);
        let copy = self.outside(&inside);
        install(program, &copy)?;
        let mut within = Command::new("chroot");
        within.arg(&self.root).args([
            "/usr/bin/env",
            "-i",
            "HOME=/root",
            "PATH=/usr/bin:/bin",
            "RUST_BACKTRACE=0",
        ]);
        // Of this run, beside which others may be on their way.
        within.arg(format!("ROCJITSU_RUNTIME_DIR=/tmp/hipcl-suite-{}", process::id()));
        within.arg(format!("HIPCL_SLOW_DEVICE={SLOWER}"));
        within.arg(format!("PROPTEST_CASES={CASES}"));
        for (name, value) in command.get_envs() {
            let Some(value) = value else { continue };
            // The logs lie outside.
            let value = match name == "HIPCL_SKIP_LOG" {
                true => Path::new(INSIDE).join(skips()).into_os_string(),
                false => value.to_owned(),
            };
            let mut pair = name.to_owned();
            pair.push("=");
            pair.push(value);
            within.arg(pair);
        }
        within
            .arg("/usr/local/rj/bin/rocjitsu")
            .args(self.is_shared.then_some("--daemon"))
            .arg("--config")
            .arg(format!("/cfg/{}.json", self.gpu))
            .arg("--")
            .arg(&inside)
            .args(command.get_args());
        Ok(within)
    }

    /// Puts the examples where the tests that start them look.
    ///
    /// # Errors
    /// If one cannot be copied.
    pub fn take_examples(&self, examples: &[(String, PathBuf)]) -> Result<()> {
        let folder = self.outside(Path::new(INSIDE)).join("examples");
        examples
            .iter()
            .try_for_each(|(name, example)| install(example, &folder.join(name)))
    }

    /// Takes the skips that programs recorded inside.
    pub fn take_skips(&self) -> String {
        let log = self.outside(Path::new(INSIDE)).join(skips());
        let text = fs::read_to_string(&log).unwrap_or_default();
        // Where there is none, there is nothing to forget.
        let _ = fs::remove_file(log);
        text
    }
}

/// The name of the file inside in which programs record what they skip.
fn skips() -> String {
    format!("skips-{}.txt", process::id())
}

/// Copies a program unless the copy is the newer one.
fn install(program: &Path, copy: &Path) -> Result<()> {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(copy) > changed(program) {
        return Ok(());
    }
    // A program that still runs from an earlier copy keeps its file.
    let _ = fs::remove_file(copy);
    fs::copy(program, copy)
        .map(|_| ())
        .map_err(|error| Error::io(program.display(), error))
}

/// The configurations in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_up() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for part in ["root/usr/local/rj/bin", "root/cfg"] {
            fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        fs::write(folder.path().join("root/usr/local/rj/bin/rocjitsu"), "").unwrap();
        for gpu in ["gfx1100", "gfx908s"] {
            fs::write(folder.path().join(format!("root/cfg/{gpu}.json")), "{}").unwrap();
        }
        folder
    }

    #[test]
    fn what_a_set_up_lacks_is_told_before_anything_is_built() {
        let empty = tempfile::tempdir().unwrap();
        let told = |folder: &Path, gpu| Emulator::at(folder, gpu).err().unwrap().to_string();
        assert!(told(empty.path(), None).contains("no emulator"));
        let folder = set_up();
        let text = told(folder.path(), Some("gfx90a"));
        assert!(text.contains("only gfx1100, gfx908s;"), "{text}");
    }

    #[test]
    fn a_program_runs_inside_with_its_arguments_and_variables() {
        let folder = set_up();
        let emulator = Emulator {
            root: folder.path().join("root"),
            gpu: "gfx1100".into(),
            is_shared: false,
        };
        fs::create_dir_all(emulator.root.join("opt/hipcl-suite/bin")).unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "one").unwrap();
        let mut command = Command::new(&program);
        command
            .args(["--test-threads", "1"])
            .env("HIPCL_PLATFORM", "amd")
            .env("HIPCL_SKIP_LOG", "elsewhere");
        let within = emulator.command(&command).unwrap();
        let args: Vec<_> = within.get_args().map(|arg| arg.to_str().unwrap()).collect();
        for part in [
            "HIPCL_PLATFORM=amd",
            "HIPCL_SLOW_DEVICE=100",
            "PROPTEST_CASES=8",
            "/cfg/gfx1100.json",
        ] {
            assert!(args.contains(&part), "{args:?}");
        }
        let skips = format!("HIPCL_SKIP_LOG=/opt/hipcl-suite/{}", super::skips());
        assert!(args.contains(&skips.as_str()), "{args:?}");
        assert!(args.ends_with(&["--", "/opt/hipcl-suite/bin/program", "--test-threads", "1"]));
        let daemon = |emulator: &Emulator| {
            let within = emulator.command(&command).unwrap();
            within.get_args().any(|arg| arg == "--daemon")
        };
        assert!(!daemon(&emulator) && daemon(&emulator.shared()));
        let copy = emulator.root.join("opt/hipcl-suite/bin/program");
        assert_eq!(fs::read_to_string(copy).unwrap(), "one");

        fs::write(emulator.root.join("opt/hipcl-suite").join(super::skips()), "a: b\n").unwrap();
        let example = folder.path().join("01_one-abc");
        fs::write(&example, "two").unwrap();
        fs::create_dir_all(emulator.root.join("opt/hipcl-suite/examples")).unwrap();
        emulator.take_examples(&[("01_one".into(), example)]).unwrap();
        let copy = emulator.root.join("opt/hipcl-suite/examples/01_one");
        assert_eq!(fs::read_to_string(copy).unwrap(), "two");

        assert_eq!(emulator.take_skips(), "a: b\n");
        assert_eq!(emulator.take_skips(), "");
    }
}
