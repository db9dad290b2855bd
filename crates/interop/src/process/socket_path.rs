//! A place in the file system where processes meet: its socket, and what to do when a call on it fails.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::PeerError;
use crate::Result;

pub(super) fn failed(call: &'static str, path: &Path, errno: Errno) -> PeerError {
    PeerError::SocketPath {
        call,
        path: path.to_owned(),
        cause: errno.into(),
        remedy: match errno {
            Errno::NOENT => "start the process that listens at this path, or correct the path",
            Errno::CONNREFUSED => "no process listens there any more: remove the file, and start the listening process",
            Errno::PROTOTYPE => "a socket of another kind is at this path: use interop::Listener in the other process",
            Errno::ADDRINUSE => {
                "the path already exists: remove it if no process listens there, or choose another path"
            }
            Errno::ACCESS | Errno::PERM | Errno::ROFS => "choose a folder that both processes may write to",
            Errno::NAMETOOLONG | Errno::INVAL => "use a path of at most 107 bytes, none of them zero",
            Errno::NOTSOCK => "the file is not a socket: choose another path",
            Errno::MFILE | Errno::NFILE => "close file descriptors, or raise their limit (ulimit -n)",
            _ => "check the path",
        },
    }
}

pub(super) fn address(path: &Path) -> Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(path).map_err(|errno| failed("the address", path, errno))?)
}

pub(super) fn socket(path: &Path, more: SocketFlags) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | more;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|errno| failed("socket", path, errno).into())
}

/// A socket that is connected to the one that listens at `path`.
pub(super) fn connect(path: &Path, limit: Duration) -> Result<OwnedFd> {
    let deadline = crate::values::deadline::after(limit);
    let address = address(path)?;
    let socket = socket(path, SocketFlags::empty())?;
    loop {
        // The system waits for room in the listener's queue no longer than it may for a send; none at all would be for
        // ever.
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Send, Some(left))
            .map_err(|errno| failed("setsockopt(SO_SNDTIMEO)", path, errno))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => {}
            Err(Errno::AGAIN | Errno::INTR) => {
                return Err(PeerError::NotMet {
                    path: path.to_owned(),
                    limit,
                    remedy: "other processes are queued before this one: have the listener accept them, or wait longer with Link::connect_within",
                }
                .into());
            }
            Err(errno) => return Err(failed("connect", path, errno).into()),
        }
    }
}
