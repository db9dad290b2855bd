use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::socket_path::{self, failed};
use super::{Link, PeerError};
use crate::Result;

/// How many may wait to be accepted.
const QUEUE: i32 = 16;

/// A path in the file system where other processes connect by [`Link::connect`].
///
/// The permissions of its folder decide which may. Several threads may accept at once, and each connection goes to one
/// of them. Dropping it removes the file.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, where there is nothing yet.
    ///
    /// # Errors
    /// [`PeerError::SocketPath`]: something is there already, the folder cannot be written, or the path is too long (107 bytes).
    pub fn bind(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let address = socket_path::address(&path)?;
        // Another thread may accept what this one was woken for, which must not make it wait for the next.
        let socket = socket_path::socket(&path, SocketFlags::NONBLOCK)?;
        rustix::net::bind(&socket, &address).map_err(|errno| failed("bind", &path, errno))?;
        let listener = Self { socket, path };
        rustix::net::listen(&listener.socket, QUEUE).map_err(|errno| failed("listen", &listener.path, errno))?;
        Ok(listener)
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next process that connects.
    ///
    /// # Errors
    /// [`PeerError::NotMet`] if none does within `limit`.
    ///
    /// # Safety
    /// As [`Link::connect`]: only programs that use this crate connect.
    pub unsafe fn accept(&self, limit: Duration) -> Result<Link> {
        let failed = |call, errno| failed(call, &self.path, errno);
        let deadline = crate::values::deadline::after(limit);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) => {
                    return Err(PeerError::NotMet {
                        path: self.path.clone(),
                        limit,
                        remedy: "start the other process, have it connect to this path, or wait longer",
                    }
                    .into());
                }
                Ok(_) => match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC) {
                    Ok(fd) => return Ok(Link::over(fd)),
                    // It has given up in the meantime, or another thread has it.
                    Err(Errno::CONNABORTED | Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => return Err(failed("accept", errno).into()),
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("poll", errno).into()),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}
