//! However a run ends, and wherever its report goes, it leaves nothing behind and does not block
//! forever.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

fn pipe(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    path
}

/// An endless run with a report; its picture goes to a pipe.
fn endless(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hipcl"))
        .args(["pipeline", "note", "--iterations", "1000000"])
        .args(["--json", "r.json", "--plot", "picture.png"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts")
}

/// Whether this process, and so its children, ignores the signal, as `nohup` and shells in the background make it.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a mask");
    mask >> (signal.as_raw() - 1) & 1 == 1
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_signal_leaves_no_file_behind() {
    let all = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    for signal in all.into_iter().filter(|&signal| !is_ignored(signal)) {
        let folder = tempfile::tempdir().expect("a folder");
        let picture = pipe(folder.path(), "picture.png");
        let mut run = endless(folder.path());
        // Both outputs are checked before the work; this one waits for its reader.
        let reader = File::open(&picture).expect("the run opens it too");
        let id = Pid::from_child(&run);
        kill_process(id, signal).expect("a living process");
        let status = run.wait().expect("it ends");
        assert!(!status.success());
        drop(reader);
        assert_eq!(entries(folder.path()), ["picture.png"], "{signal:?}");
    }
}

#[test]
fn a_report_into_a_pipe_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = pipe(folder.path(), "report");
    let mut run = Command::new(env!("CARGO_BIN_EXE_hipcl"))
        .args(["doctor", "--json", "report", "--route", "svm-coarse"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut text = String::new();
    let mut reader = File::open(&report).expect("the run opens it too");
    reader.read_to_string(&mut text).expect("text");
    run.wait().expect("it ends");
    let value: serde_json::Value = serde_json::from_str(&text).expect("the whole report");
    assert!(value.get("schema").is_some());
}
