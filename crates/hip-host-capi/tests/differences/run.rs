//! Sequences in processes of their own, so that a crash is an answer like another.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use crate::world::Line;
use crate::{HIPRTC, LIBRARY, OURS, RANGE};

/// Sequences of one process on the emulator, where a process may be killed for the time that it takes.
const FEW: u64 = 40;

/// Sequences of one process on the host platform, where most of a process's time goes into the compilation of its module.
const MANY: u64 = 400;

/// The lines of each sequence.
pub type Log = Vec<(u64, Vec<Line>)>;

/// Ends the process without its libraries' last steps.
pub fn end_at_once() -> ! {
    use std::io::Write;
    let _ = std::io::stdout().flush();
    // SAFETY: nothing of this process is used any more.
    unsafe { _exit(0) }
}

unsafe extern "C" {
    fn _exit(code: std::ffi::c_int) -> !;
}

/// What a process printed of its sequences.
fn parse(text: &str) -> Log {
    let mut log = Log::new();
    for line in text.lines() {
        if let Some(call) = line.strip_prefix("@ ") {
            let Some((number, call)) = call.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse() else {
                continue;
            };
            if log.last().is_none_or(|(last, _)| *last != number) {
                log.push((number, Vec::new()));
            }
            if let Some((_, lines)) = log.last_mut() {
                lines.push(Line {
                    call: call.to_owned(),
                    answer: "crash".to_owned(),
                });
            }
        } else if let Some(answer) = line.strip_prefix("= ")
            && let Some(line) = log.last_mut().and_then(|(_, lines)| lines.last_mut())
        {
            answer.clone_into(&mut line.answer);
        }
    }
    log
}

/// Runs a range in processes for `count` sequences that `start` makes, each going on behind the sequence that ended the
/// last.
fn batches(range: Range<u64>, count: u64, start: impl Fn(Range<u64>) -> Output + Sync) -> Log {
    let next = Mutex::new(range.start);
    let all = Mutex::new(Log::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let batch = {
                        let mut next = next.lock().unwrap();
                        let batch = *next..range.end.min(*next + count);
                        *next = batch.end;
                        batch
                    };
                    if batch.is_empty() {
                        return;
                    }
                    let mut first = batch.start;
                    while first < batch.end {
                        let output = start(first..batch.end);
                        let log = parse(&String::from_utf8_lossy(&output.stdout));
                        let reached = log.last().map(|(last, _)| *last);
                        assert!(
                            reached.is_some() || output.status.success(),
                            "no sequence from {first} on: {}",
                            String::from_utf8_lossy(&output.stderr)
                        );
                        first = match (output.status.success(), reached) {
                            (false, Some(last)) => last + 1,
                            _ => batch.end,
                        };
                        all.lock().unwrap().extend(log);
                    }
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by_key(|(number, _)| *number);
    all
}

const ARGUMENTS: [&str; 4] = ["--ignored", "--exact", "sequences", "--nocapture"];

/// On the host platform, as lenient as ROCm.
pub fn here(range: Range<u64>) -> Log {
    let program = std::env::current_exe().expect("a test knows its own program");
    let given = std::env::var_os(OURS).map(PathBuf::from);
    let library = given.unwrap_or_else(|| crate::library::folder().join("libhip_host.so"));
    batches(range, MANY, |batch| {
        Command::new("timeout")
            .args(["-k", "5", "600"])
            .arg(&program)
            .args(ARGUMENTS)
            .env(RANGE, format!("{}..{}", batch.start, batch.end))
            .env(LIBRARY, &library)
            .env("HIP_HOST_STRICT", "0")
            .output()
            .expect("a test starts itself")
    })
}

/// On AMD's library below `folder`, on the emulator there.
pub fn real(folder: &Path, range: Range<u64>) -> Log {
    let root = folder.join("root");
    let program = std::env::current_exe().expect("a test knows its own program");
    let copy = root.join("opt/t/diff_sequences");
    std::fs::create_dir_all(root.join("opt/t")).expect("the folder is writable");
    std::fs::copy(&program, &copy).expect("the folder is writable");
    batches(range, FEW, |batch| {
        let scratch = format!("/tmp/rt.{}.{}", std::process::id(), batch.start);
        std::fs::create_dir_all(root.join(&scratch[1..])).expect("the folder is writable");
        let output = Command::new("timeout")
            .args(["-k", "5", "60", "chroot"])
            .arg(&root)
            .args(["/usr/bin/env", "HOME=/root", "PATH=/usr/bin:/bin"])
            .arg(format!("ROCJITSU_RUNTIME_DIR={scratch}"))
            .arg(format!("{RANGE}={}..{}", batch.start, batch.end))
            .arg(format!("{LIBRARY}=libamdhip64.so.7"))
            .arg(format!("{HIPRTC}=libhiprtc.so.7"))
            .args(["/usr/local/rj/bin/rocjitsu", "--config", "/cfg/gfx908s.json", "--"])
            .arg("/opt/t/diff_sequences")
            .args(ARGUMENTS)
            .output()
            .expect("chroot starts");
        let _ = std::fs::remove_dir_all(root.join(&scratch[1..]));
        output
    })
}
