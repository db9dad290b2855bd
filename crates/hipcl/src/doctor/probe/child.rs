//! A process that may crash, hang or talk nonsense.

use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::signal;

/// What is kept of each of the child's two streams.
const KEPT_BYTES: usize = 1 << 20;
/// How long a killed process may take to go; one that waits inside a driver may never.
const TO_DIE: Duration = Duration::from_secs(5);
/// How long the pipes may stay open after the child: their holders are not our business.
const TO_CLOSE: Duration = Duration::from_secs(1);

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this status.
    Status(i32),
    /// By this signal, which was not sent from here.
    Signal(i32),
    /// It was killed after this time.
    TimedOut(Duration),
    /// It was to be killed after this time and did not go.
    Stuck(Duration),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(number) => write!(f, "died by {}", signal::name(*number)),
            Self::TimedOut(limit) => write!(f, "hung, and was killed after {} s", limit.as_secs()),
            Self::Stuck(limit) => write!(
                f,
                "hung for {} s and could not be killed: it is blocked in a kernel driver",
                limit.as_secs()
            ),
        }
    }
}

/// What a child left.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs `command` without input, in a process group of its own, for no longer than `limit`.
pub(super) fn run(mut command: Command, limit: Duration) -> std::io::Result<Ended> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // a compiler that it started must end with it
        .process_group(0)
        .spawn()?;
    let stdout = Collected::from(child.stdout.take());
    let stderr = Collected::from(child.stderr.take());
    let end = wait(&mut child, limit)?;
    Ok(Ended {
        end,
        stdout: stdout.text(),
        stderr: stderr.text(),
    })
}

fn wait(child: &mut Child, limit: Duration) -> std::io::Result<End> {
    let pid = Pid::from_child(child);
    let (ended, end) = channel();
    std::thread::spawn(move || {
        // NOWAIT leaves the process to be collected below: until then no other process can have its number
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        // the receiver may have given up
        let _ = ended.send(());
    });
    let in_time = end.recv_timeout(limit).is_ok();
    // what it started and left behind goes as well; nothing left is not a failure
    let _ = kill_process_group(pid, Signal::KILL);
    if !in_time && end.recv_timeout(TO_DIE).is_err() {
        return Ok(End::Stuck(limit));
    }
    let status = child.wait()?;
    Ok(if in_time { ending(status) } else { End::TimedOut(limit) })
}

fn ending(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Status(code),
        (None, number) => End::Signal(number.unwrap_or_default()),
    }
}

/// What came out of a pipe so far.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl Collected {
    fn from(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (close, closed) = channel();
        if let Some(mut pipe) = pipe {
            let bytes = Arc::clone(&bytes);
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(read @ 1..) = pipe.read(&mut chunk) {
                    let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                    bytes.extend_from_slice(&chunk[..read]);
                    // the end is what tells; a flood must not fill the memory
                    let surplus = bytes.len().saturating_sub(2 * KEPT_BYTES);
                    if surplus > 0 {
                        let keep = bytes.len() - KEPT_BYTES;
                        bytes.drain(..keep);
                    }
                }
                drop(close);
            });
        }
        Self { bytes, closed }
    }

    fn text(&self) -> String {
        // answers when the pipe is closed; the time limit is for a pipe that a stray process holds
        let _ = self.closed.recv_timeout(TO_CLOSE);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> Ended {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        run(command, limit).expect("a shell starts")
    }

    #[test]
    fn status_and_both_streams_are_kept_apart() {
        let ended = shell("echo out; echo err >&2; exit 3", LONG);
        assert_eq!(ended.end, End::Status(3));
        assert_eq!((&*ended.stdout, &*ended.stderr), ("out\n", "err\n"));
    }

    #[test]
    fn a_signal_is_named() {
        for (number, name) in [(11, "SIGSEGV"), (6, "SIGABRT"), (7, "SIGBUS"), (9, "SIGKILL")] {
            let ended = shell(&format!("kill -{number} $$"), LONG);
            assert_eq!(ended.end, End::Signal(number));
            assert_eq!(ended.end.to_string(), format!("died by {name}"));
        }
    }

    #[test]
    fn a_hung_child_is_killed_with_what_it_started_and_keeps_what_it_said() {
        let start = Instant::now();
        let ended = shell("echo before; sleep 600 & echo $!; wait", Duration::from_millis(300));
        assert!(matches!(ended.end, End::TimedOut(_)), "{:?}", ended.end);
        assert!(ended.stdout.starts_with("before\n"), "{}", ended.stdout);
        let grandchild: u32 = ended.stdout.lines().last().unwrap().parse().unwrap();
        // a signal is sent before it has its effect
        let runs =
            || std::fs::read_to_string(format!("/proc/{grandchild}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        while runs() {
            assert!(start.elapsed() < LONG, "process {grandchild} still runs");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_flood_is_cut_to_its_end() {
        let ended = shell("head -c 5000000 /dev/zero | tr '\\0' x; echo END", LONG);
        assert_eq!(ended.end, End::Status(0));
        assert!(ended.stdout.len() <= 2 * KEPT_BYTES + 4096);
        assert!(ended.stdout.ends_with("END\n"));
    }
}
