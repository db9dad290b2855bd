//! What processes tell each other: a header in JSON, and the bytes of memory that go with it.
//!
//! Each request has a connection of its own, on which its reply comes. Those of [`Request::Join`] and [`Request::Split`]
//! stay open as long as the rank: its end tells that the rank's process has ended, and a failure of the communicator comes on it at once.

use std::ffi::CString;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use rccl_sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::meeting::Wish;
use crate::operation::{Kind, Operation};
use crate::place::Place;
use crate::status::Failure;

/// More than any header has.
const MOST_HEADER: u64 = 1 << 16;

/// A process that makes ids. Its socket has a name without a file, which ends with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) process: u64,
    /// Known to those who got an id.
    pub(crate) secret: u64,
}

impl Address {
    pub(crate) fn socket(self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("hip-host-rccl-{}-{:016x}", self.process, self.secret))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Join {
        id: u64,
        ranks: i32,
        rank: i32,
        device: i32,
    },
    /// The wish of the rank that got this key when it joined, in its split of this number. The connection stays open as
    /// long as the rank that comes of it.
    Split { key: u64, number: u64, wish: Wish },
    /// Of the rank that got this key when it joined.
    Of { key: u64, action: Action },
}

/// What a rank does, as [`Meeting`](crate::meeting::Meeting) has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    WaitComplete,
    Issue(Told),
    Leave,
    /// What the call reads follows, and what it writes comes back.
    Arrive(Place, Told),
    Destroy,
    Abort,
    Fail(TellsFailure),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// With the rank's key.
    Joined(u64),
    /// The key of the split's rank, its number and how many there are; nothing without a color.
    Part(Option<(u64, usize, usize)>),
    Done,
    /// The work ended without a result.
    Aborted,
    /// The process where the ranks meet has destroyed its own one, and may end.
    Left,
    Place(Place),
    Failed(TellsFailure),
}

/// A call without its addresses.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    kind: Kind,
    count: usize,
    datatype: u32,
    op: u32,
    root: usize,
    captured: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TellsFailure {
    code: u32,
    text: String,
}

impl Told {
    pub(crate) fn of(operation: &Operation) -> Self {
        Self {
            kind: operation.kind,
            count: operation.count,
            datatype: operation.datatype.0,
            op: operation.op.0,
            root: operation.root,
            captured: operation.captured,
        }
    }

    /// With no memory yet.
    pub(crate) fn operation(&self) -> Operation {
        Operation {
            kind: self.kind,
            send: 0,
            recv: 0,
            count: self.count,
            datatype: ncclDataType_t(self.datatype),
            op: ncclRedOp_t(self.op),
            root: self.root,
            captured: self.captured,
        }
    }
}

impl TellsFailure {
    pub(crate) fn of(failure: &Failure) -> Self {
        Self {
            code: failure.code.0,
            text: failure.text.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn failure(self) -> Failure {
        Failure {
            code: ncclResult_t(self.code),
            text: CString::new(self.text).unwrap_or_default(),
        }
    }
}

impl Reply {
    pub(crate) fn failed(failure: &Failure) -> Self {
        Self::Failed(TellsFailure::of(failure))
    }
}

pub(crate) fn send(stream: &mut UnixStream, header: &impl Serialize, memory: &[u8]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let lengths = (header.len() as u64, memory.len() as u64);
    stream.write_all(&lengths.0.to_ne_bytes())?;
    stream.write_all(&lengths.1.to_ne_bytes())?;
    stream.write_all(&header)?;
    stream.write_all(memory)
}

pub(crate) fn receive<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<(T, Vec<u8>)> {
    let mut length = || {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
    };
    let (header, memory) = (length()?, length()?);
    if header > MOST_HEADER {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let header = exactly(stream, header)?;
    Ok((serde_json::from_slice(&header)?, exactly(stream, memory)?))
}

/// Memory grows with what comes, not with what is promised.
fn exactly(stream: &mut UnixStream, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
