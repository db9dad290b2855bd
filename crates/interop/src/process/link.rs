use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};

use super::message::{Message, SIZE};
use super::{PeerError, Process};
use crate::Result;

/// Long enough for work that is meant to end, short enough to learn of a deadlock.
const LIMIT: Duration = Duration::from_secs(60);
/// More than is ever due, so what should not be there is received and closed.
const MOST_FDS: usize = 8;

/// A connection to one other process, for one buffer.
///
/// It is a Unix socket that preserves message boundaries (`SOCK_SEQPACKET`). Dropping it hangs up, even if other copies
/// of the descriptor exist.
///
/// The process at the other end is trusted: give it only to processes that you would let write your memory.
///
/// ```no_run
/// use std::process::{Command, Stdio};
///
/// let (link, childs) = interop::Link::pair()?;
/// let child = Command::new("worker").stdin(Stdio::from(childs)).spawn()?;
/// // In the worker: `let link = unsafe { interop::Link::from_stdin() }?;`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Code that could end the connection under a process that still works has to promise that it does not:
///
/// ```compile_fail,E0133
/// let link = interop::Link::from_stdin()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Link {
    socket: Arc<Socket>,
    limit: Duration,
}

/// The other end of a [`Link::pair`], on its way to a child process, as its standard input, or to a thread.
///
/// It gives no access to the descriptor: code that shuts it down would end the link under the process that uses it.
#[derive(Debug)]
pub struct LinkEnd(OwnedFd);

impl LinkEnd {
    /// A link of this process, for a thread that shares memory with this one.
    #[must_use]
    pub fn into_link(self) -> Link {
        Link::over(self.0)
    }

    /// The descriptor, to be passed to another process by other means than [`Stdio`].
    ///
    /// # Safety
    /// As [`Link::from_fd`], for the process that makes a link of it.
    #[must_use]
    pub unsafe fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl From<LinkEnd> for Stdio {
    fn from(end: LinkEnd) -> Self {
        end.0.into()
    }
}

/// The descriptor, hung up with its last owner.
pub(super) struct Socket {
    fd: OwnedFd,
    peer: Mutex<Process>,
}

impl Link {
    /// Both ends of a new connection: one to keep, one for a child process. Drop the child's when the child has started
    /// (a `Command` that received it keeps it until it is dropped): the link hangs up only when no process has that end
    /// any more.
    ///
    /// # Errors
    /// [`PeerError::Link`] if the system has no descriptors left.
    pub fn pair() -> Result<(Self, LinkEnd)> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| failed("socketpair", Process::default(), errno))?;
        Ok((Self::over(ours), LinkEnd(theirs)))
    }

    /// An end received as a descriptor.
    ///
    /// # Errors
    /// [`PeerError::NotALink`] for anything else.
    ///
    /// # Safety
    /// While the link or a [`Joint`](crate::Joint) over it lives, nothing else reads, writes or shuts down this end of
    /// the connection, by this descriptor or a copy of it. The other side takes a shutdown for the end of this process,
    /// and its memory for its own.
    pub unsafe fn from_fd(fd: OwnedFd) -> Result<Self> {
        let not = |reason: String| PeerError::NotALink { reason };
        let domain = rustix::net::sockopt::socket_domain(&fd).map_err(|_| not("it is not a socket".into()))?;
        let kind =
            rustix::net::sockopt::socket_type(&fd).map_err(|errno| not(format!("its type is unknown ({errno})")))?;
        if domain != AddressFamily::UNIX || kind != SocketType::SEQPACKET {
            return Err(not("it is a socket of another kind".into()).into());
        }
        Ok(Self::over(fd))
    }

    /// The end that the parent process passed as standard input, which is `/dev/null` from then on: a process that this
    /// one starts would inherit the connection, and could end it.
    ///
    /// # Errors
    /// [`PeerError::NotALink`] if standard input is something else.
    ///
    /// # Safety
    /// As [`from_fd`](Self::from_fd): nothing else in this process uses standard input, no process that it has started
    /// inherited it, and this is called once.
    pub unsafe fn from_stdin() -> Result<Self> {
        let failed = |call| {
            move |cause| PeerError::Link {
                call,
                process: Process::default(),
                cause,
            }
        };
        let fd = std::io::stdin().as_fd().try_clone_to_owned();
        // SAFETY: the caller's promise.
        let link = unsafe { Self::from_fd(fd.map_err(failed("fcntl"))?) }?;
        let null = File::open("/dev/null").map_err(failed("open"))?;
        rustix::stdio::dup2_stdin(&null).map_err(|errno| failed("dup2")(errno.into()))?;
        Ok(link)
    }

    /// A connection to the process that [listens](super::Listener) at `path`, which need not have accepted it when this
    /// returns. If that process has no room for one more, this waits up to 60 s.
    ///
    /// # Errors
    /// [`PeerError::SocketPath`] if no process listens there; [`PeerError::NotMet`] if it stays without room.
    ///
    /// # Safety
    /// A program that uses this crate listens there: what a buffer is exported to closes the memory's descriptor before
    /// it hangs up, and uses the memory only during its turns.
    pub unsafe fn connect(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::connect_within(path, LIMIT) }
    }

    /// As [`connect`](Self::connect), with another limit, which is the link's from then on.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Safety
    /// As [`connect`](Self::connect).
    pub unsafe fn connect_within(path: impl AsRef<Path>, limit: Duration) -> Result<Self> {
        let socket = super::socket_path::connect(path.as_ref(), limit)?;
        Ok(Self::over(socket).with_limit(limit))
    }

    /// The same link with another limit for every wait on the other process; the default is 60 s. A call that waits
    /// more than once has one limit in total.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The process id at the other end, once it has sent it.
    #[must_use]
    pub fn peer(&self) -> Option<u32> {
        self.socket.peer().id()
    }

    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// The end of a wait that begins now.
    pub(super) fn deadline(&self) -> Instant {
        crate::values::deadline::after(self.limit)
    }

    pub(super) fn process(&self) -> Process {
        self.socket.peer()
    }

    /// For callbacks, which outlive a borrow.
    pub(super) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(super) fn over(fd: OwnedFd) -> Self {
        Self {
            socket: Arc::new(Socket {
                fd,
                peer: Mutex::default(),
            }),
            limit: LIMIT,
        }
    }

    pub(super) fn send(&self, message: &Message, fd: Option<BorrowedFd<'_>>, during: &'static str) -> Result<()> {
        self.socket.send(message, fd, during)
    }

    /// The next message, waited for within the limit.
    pub(super) fn receive(&self, during: &'static str) -> Result<(Message, Option<OwnedFd>)> {
        self.receive_until(self.deadline(), during)
    }

    /// The next message, if it comes in time.
    pub(super) fn receive_until(&self, deadline: Instant, during: &'static str) -> Result<(Message, Option<OwnedFd>)> {
        loop {
            if !self.socket.ready(deadline)? {
                return Err(self.late(during).into());
            }
            // Something else may have taken what there was.
            if let Some(received) = self.socket.receive(during)? {
                return Ok(received);
            }
        }
    }

    /// Whether the limit has passed.
    pub(super) fn late(&self, during: &'static str) -> PeerError {
        PeerError::Late {
            process: self.process(),
            during,
            limit: self.limit,
        }
    }

    /// The next message, if it is there.
    pub(super) fn poll(&self, during: &'static str) -> Result<Option<(Message, Option<OwnedFd>)>> {
        self.socket.receive(during)
    }

    /// Whether the other side has hung up, with messages unread or not.
    pub(super) fn is_hung_up(&self) -> bool {
        self.socket.is_hung_up()
    }

    /// Signals the other side that nothing more comes; it may still send.
    pub(super) fn finish(&self) {
        self.socket.finish();
    }

    /// Signals the other side that nothing more comes, and waits for its end: `false` if that does not come in time.
    pub(super) fn outlast(&self, deadline: Instant) -> bool {
        self.finish();
        while !self.is_hung_up() {
            // Whatever it still says is of no interest, be it well-formed or not.
            let late = !self.socket.ready(deadline).is_ok_and(|ready| ready);
            if late || Instant::now() >= deadline {
                return self.is_hung_up();
            }
            let _ = self.socket.receive("waiting for it to close the link");
        }
        true
    }
}

pub(super) fn failed(call: &'static str, process: Process, errno: Errno) -> PeerError {
    PeerError::Link {
        call,
        process,
        cause: errno.into(),
    }
}

impl Socket {
    pub(super) fn peer(&self) -> Process {
        *self.peer.lock()
    }

    /// Never waits: at most a few messages are under way, which any socket has room for.
    pub(super) fn send(&self, message: &Message, fd: Option<BorrowedFd<'_>>, during: &'static str) -> Result<()> {
        let bytes = message.encode();
        let fds = fd.as_slice();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            // There is room for one.
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = retry(|| rustix::net::sendmsg(&self.fd, &[IoSlice::new(&bytes)], &mut control, flags));
        match sent {
            Ok(_) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(self.gone(during).into()),
            Err(errno) => Err(failed("sendmsg", self.peer(), errno).into()),
        }
    }

    pub(super) fn is_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::RDHUP)];
        let now = Timespec::default();
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0) && fds[0].revents().intersects(gone)
    }

    pub(super) fn finish(&self) {
        // The only failure is a side that has hung up.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// Waits until there is something to receive, or the deadline has passed: `false`.
    fn ready(&self, deadline: Instant) -> Result<bool> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("poll", self.peer(), errno).into()),
            }
        }
    }

    /// The next message; `None` if there is none. Descriptors that do not belong to it are closed.
    fn receive(&self, during: &'static str) -> Result<Option<(Message, Option<OwnedFd>)>> {
        // One byte more, to see that a message is too long.
        let mut bytes = [0; SIZE + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = retry(|| {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            rustix::net::recvmsg(&self.fd, &mut parts, &mut control, flags)
        });
        let received = match received {
            Ok(received) => received,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(self.gone(during).into()),
            Err(errno) => return Err(failed("recvmsg", self.peer(), errno).into()),
        };
        let mut fds = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = part {
                fds.extend(more);
            }
        }
        if received.bytes == 0 {
            return Err(self.gone(during).into());
        }
        let refused = |reason: String| PeerError::Message {
            process: self.peer(),
            reason,
        };
        let message = Message::decode(&bytes[..received.bytes]).map_err(refused)?;
        self.peer.lock().0 = Some(message.process);
        let due = usize::from(message.carries_fd());
        if fds.len() != due || received.flags.contains(ReturnFlags::CTRUNC) {
            let reason = format!("got {} file descriptors, expected {due}", fds.len());
            return Err(refused(reason).into());
        }
        Ok(Some((message, fds.pop())))
    }

    fn gone(&self, during: &'static str) -> PeerError {
        PeerError::Gone {
            process: self.peer(),
            during,
        }
    }
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Copies of the descriptor, in this process or a child of it, do not keep the link up.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("peer", &self.peer())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
