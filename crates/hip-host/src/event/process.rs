//! Which processes are alive. A process's number is used again once it has ended; together with the time of its start
//! it is not.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process, by its number and the time of its start in clock ticks since the system started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    id: u32,
    start: u64,
}

/// Linux numbers fewer than 2^22 processes.
const ID_BITS: u32 = 22;

impl Process {
    /// The calling process.
    pub(super) fn this() -> Self {
        static THIS: OnceLock<Process> = OnceLock::new();
        *THIS.get_or_init(|| {
            let id = std::process::id();
            let start = started(id).unwrap_or(0);
            Self { id, start }
        })
    }

    /// As one word, which is not 0.
    pub(super) fn word(self) -> u64 {
        self.start << ID_BITS | u64::from(self.id)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self {
            id: (word & ((1 << ID_BITS) - 1)) as u32,
            start: word >> ID_BITS,
        }
    }
}

/// When a process started; `None` if the system does not tell.
fn started(id: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may contain anything. The start is field 22, and what follows the name is field 3.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// Another process, for as long as it lives.
pub(super) enum Peer {
    /// It can be asked whether it has ended.
    Known(OwnedFd),
    Ended,
    /// This process, or one that the system does not tell about.
    Lives,
}

impl Peer {
    pub(super) fn of(process: Process) -> Self {
        if process == Process::this() {
            return Self::Lives;
        }
        let id = i32::try_from(process.id).ok().and_then(Pid::from_raw);
        let Some(id) = id else {
            return Self::Ended;
        };
        match pidfd_open(id, PidfdFlags::empty()) {
            // Read after the process was opened, so it is this one's.
            Ok(_) if started(process.id).is_some_and(|start| start != process.start) => Self::Ended,
            Ok(fd) => Self::Known(fd),
            Err(Errno::SRCH) => Self::Ended,
            Err(_) => Self::Lives,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Known(fd) => {
                let now = Timespec::default();
                let mut asked = [PollFd::new(fd, PollFlags::IN)];
                poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
            }
            Self::Ended => true,
            Self::Lives => false,
        }
    }
}
