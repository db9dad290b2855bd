use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::values::Carrier;

/// What can go wrong between this process and another one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The system refused a call on a link.
    #[error("{call} on the link to {process} failed: {cause}")]
    Link {
        /// The call.
        call: &'static str,
        /// Who is at the other end.
        process: Process,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// The system refused a call on the place where processes meet.
    #[error("{call} failed at `{}`: {cause}; {remedy}", .path.display())]
    SocketPath {
        /// The call.
        call: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's answer.
        cause: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Two processes did not connect in time.
    #[error("no connection through `{}` within {limit:?}; {remedy}", .path.display())]
    NotMet {
        /// Where.
        path: PathBuf,
        /// How long the wait was.
        limit: Duration,
        /// What to do.
        remedy: &'static str,
    },
    /// A descriptor that is not a link.
    #[error("the file descriptor is not a link: {reason}; use one from Link::pair, or connect to a Listener")]
    NotALink {
        /// What it is instead.
        reason: String,
    },
    /// The other process exited, was killed, or dropped its end.
    #[error("{process} closed the link (while {during})")]
    Gone {
        /// Which process.
        process: Process,
        /// What was being done.
        during: &'static str,
    },
    /// The other process is alive but did not answer in time.
    #[error(
        "{process} did not answer within {limit:?} (while {during}); check what it is waiting for, or set another limit with Link::with_limit"
    )]
    Late {
        /// Which process.
        process: Process,
        /// What was being done.
        during: &'static str,
        /// How long the wait was.
        limit: Duration,
    },
    /// The bytes are not a message of this protocol, or not the expected one.
    #[error("invalid message from {process}: {reason}; use the same version of this crate at both ends")]
    Message {
        /// Which process.
        process: Process,
        /// What is wrong.
        reason: String,
    },
    /// The other process did not import the memory.
    #[error("{process} did not import the memory: {reason}")]
    Refused {
        /// Which process.
        process: Process,
        /// Its words.
        reason: String,
    },
    /// The other process has the turn.
    #[error("{process} has the turn to use the memory; take it back with Joint::take")]
    NotOurTurn {
        /// Which process.
        process: Process,
    },
    /// The other process's work failed after it had given the turn away.
    #[error("the work of {process} failed and left the memory in an undefined state: {reason}")]
    Failed {
        /// Which process.
        process: Process,
        /// Its words.
        reason: String,
    },
    /// Memory of another device than the bridge's.
    #[error(
        "the memory is on the device {theirs}, but this bridge uses {ours}; import it with a bridge on that device"
    )]
    OtherDevice {
        /// Whose memory it is.
        theirs: String,
        /// The bridge's device.
        ours: String,
    },
    /// Elements of another size.
    #[error(
        "the memory holds elements of {theirs} bytes, but the import has elements of {ours} bytes; use the same type on both sides"
    )]
    ElementSize {
        /// The exporter's.
        theirs: usize,
        /// The importer's.
        ours: usize,
    },
    /// Nothing carries this memory to another process.
    #[error("the memory cannot go to another process: {}", list(.tried))]
    NotPossible {
        /// Each carrier considered, and why it was not taken.
        tried: Vec<(Carrier, String)>,
    },
    /// The memory ended with the process that owned it.
    #[error(
        "the memory belonged to {process}, which closed the link; an IPC handle does not keep memory alive, but a file descriptor does (Bridge::alloc_exportable)"
    )]
    MemoryGone {
        /// Which process.
        process: Process,
    },
    /// The exporter takes the memory back for itself.
    #[error("{process} takes its memory back; drop the Joint")]
    TakenBack {
        /// Which process.
        process: Process,
    },
}

/// The process at the other end of a link, by its id if it has sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process(pub(crate) Option<u32>);

impl Process {
    /// Its id, for messages only: another process may have it by now.
    #[must_use]
    pub fn id(self) -> Option<u32> {
        self.0
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => write!(f, "process {id}"),
            None => f.write_str("the other process"),
        }
    }
}

fn list(tried: &[(Carrier, String)]) -> String {
    let one = |(carrier, reason): &(Carrier, String)| format!("{carrier}: {reason}");
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}
