use super::error::Process;
use super::link::{failed, new_socket};
use super::{Link, PeerError};
use crate::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A place in the file system where other processes connect by [`Link::connect`].
///
/// Who may is decided by the permissions of the file's folder. Dropping it removes the file.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, where there is nothing yet.
    ///
    /// # Errors
    /// [`PeerError::Link`]: something is there already, or the folder cannot be written.
    pub fn bind(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let failed = |call, errno| failed(call, Process::default(), errno);
        let address = SocketAddrUnix::new(&*path).map_err(|errno| failed("the address", errno))?;
        let socket = new_socket().map_err(|errno| failed("socket", errno))?;
        rustix::net::bind(&socket, &address).map_err(|errno| failed("bind", errno))?;
        let listener = Self { socket, path };
        rustix::net::listen(&listener.socket, 16).map_err(|errno| failed("listen", errno))?;
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
    /// [`PeerError::Late`] if none does within `limit`.
    pub fn accept(&self, limit: Duration) -> Result<Link> {
        let deadline = crate::deadline::after(limit);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            let ready = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
            match ready {
                Ok(0) => {
                    return Err(PeerError::Late {
                        process: Process::default(),
                        during: "a connection was waited for",
                        limit,
                    }
                    .into());
                }
                Ok(_) => match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC) {
                    Ok(fd) => return Link::from_fd(fd),
                    // It has given up in the meantime.
                    Err(Errno::CONNABORTED | Errno::INTR) => {}
                    Err(errno) => return Err(failed("accept", Process::default(), errno).into()),
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("poll", Process::default(), errno).into()),
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
