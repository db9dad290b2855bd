//! What the tests share: the command, a folder of its own for each run, and the bridge.
#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use interop::{Bridge, Options, Route};
use serde_json::Value;
use tempfile::TempDir;

/// A run of the command in a folder of its own.
pub struct Run {
    pub folder: TempDir,
    pub output: Output,
}

impl Run {
    /// Runs `hipcl` with these arguments; `FOLDER` in them stands for the run's folder.
    pub fn new(args: &[&str]) -> Self {
        Self::with(args, |_| {})
    }

    /// The same, with a change to the command or its folder first.
    pub fn with(args: &[&str], prepare: impl FnOnce(&mut Prepared)) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hipcl"));
        command.args(
            args.iter()
                .map(|arg| arg.replace("FOLDER", &folder.path().to_string_lossy())),
        );
        command.current_dir(folder.path());
        let mut prepared = Prepared {
            command,
            folder: folder.path().to_owned(),
        };
        prepare(&mut prepared);
        let output = prepared.command.output().expect("the command starts");
        Self { folder, output }
    }

    pub fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn json(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.path(name))
            .unwrap_or_else(|error| panic!("{name}: {error}\n{}", self.stderr()));
        serde_json::from_str(&text).expect("valid JSON")
    }

    /// The run was refused as bad input is: status 2, one line that says all of `parts`, and nothing written.
    #[track_caller]
    pub fn assert_refused(&self, parts: &[&str]) {
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert_eq!(self.status(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "one line, not:\n{stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "`{part}` is not in: {stderr}");
        }
        assert_eq!(stdout, "");
        let left: Vec<_> = files(self.folder.path())
            .into_iter()
            .filter(|name| !name.starts_with("given"))
            .collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

/// A run about to start.
pub struct Prepared {
    pub command: Command,
    pub folder: PathBuf,
}

impl Prepared {
    pub fn env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.command.env(name, value);
    }
}

/// Names of the files in a folder.
pub fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder can be listed");
    entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether the devices that the tests need are there; if not, says so where the test run counts it.
pub fn ready(test: &str) -> bool {
    match open(None) {
        Ok(_) => true,
        Err(reason) => {
            skip(test, &reason);
            false
        }
    }
}

/// A bridge, or the reason why there is none.
pub fn open(route: Option<Route>) -> Result<Bridge, String> {
    let selection = platform::select().map_err(|error| error.to_string())?;
    Bridge::open(
        &selection,
        &Options {
            route,
            ..Options::default()
        },
    )
    .map_err(|error| error.to_string())
}

/// As [`ready`], for what is planted in the host platform's way.
pub fn ready_on_host(test: &str) -> bool {
    match open(None) {
        Ok(bridge) if bridge.report().platform == platform::Platform::Host => true,
        Ok(bridge) => {
            let platform = bridge.report().platform;
            skip(test, &format!("made for the host platform, this is {platform}"));
            false
        }
        Err(reason) => {
            skip(test, &reason);
            false
        }
    }
}

pub fn skip(test: &str, reason: &str) {
    use std::io::Write as _;
    let line = format!("{test}: {}", reason.lines().collect::<Vec<_>>().join(" | "));
    println!("skipped: {line}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
            .expect("the skip log can be written");
    }
}
