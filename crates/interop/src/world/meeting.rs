//! Where the processes meet, and what they say there.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{self, socket_peercred};

use super::WorldError;
use super::launcher::{Launcher, Place};
use crate::values::deadline;

/// The variable that names the place.
const VARIABLE: &str = "HIPCL_WORLD";

/// How a process begins, so that one of another program is not taken for one.
const GREETING: &[u8; 8] = b"hipclwld";

/// Longer than an id.
const MOST_BYTES: usize = 1 << 20;

/// How long a process that has come may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// After which a connection without a word is tried, three times: a machine counts as gone after 20 s.
const SILENCE: Duration = Duration::from_secs(5);

/// Between two looks whether somebody came, or listens.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) enum Meeting {
    /// The abstract name of a socket on this machine.
    Local(String),
    /// `HOST:PORT`.
    Tcp(String),
}

/// What a process says when it comes, as four numbers.
#[derive(Debug, PartialEq, Eq)]
struct Hello {
    rank: u32,
    size: u32,
    /// How often it has met the others.
    time: u32,
}

/// Answers.
const WELCOME: u8 = 0;
const OTHERS: u8 = 1;

/// A connection to another process.
pub(super) trait Line: Read + Write + AsFd + Send {
    fn limit(&self, left: Duration) -> io::Result<()>;

    /// Makes a machine that is gone close the connection, as a process does.
    fn keep_alive(&self) -> io::Result<()>;
}

impl Line for UnixStream {
    fn limit(&self, left: Duration) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }

    fn keep_alive(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Line for TcpStream {
    fn limit(&self, left: Duration) -> io::Result<()> {
        self.set_nonblocking(false)?;
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(left))?;
        self.set_write_timeout(Some(left))
    }

    fn keep_alive(&self) -> io::Result<()> {
        sockopt::set_socket_keepalive(self, true)?;
        sockopt::set_tcp_keepidle(self, SILENCE)?;
        sockopt::set_tcp_keepintvl(self, SILENCE)?;
        sockopt::set_tcp_keepcnt(self, 3)?;
        Ok(())
    }
}

/// The rank of another process, and the connection to it.
pub(super) type RankLine = (usize, Box<dyn Line>);

/// Accepts the next connection, if there is one.
type Accept = Box<dyn Fn() -> io::Result<Option<Box<dyn Line>>>>;

impl Meeting {
    pub(super) fn of(place: &Place, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, WorldError> {
        let launcher = place.launcher;
        if let Some(value) = variable(VARIABLE) {
            return match value.strip_prefix("tcp://") {
                Some(at)
                    if at
                        .rsplit_once(':')
                        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) =>
                {
                    Ok(Self::Tcp(at.to_owned()))
                }
                _ => Err(WorldError::Variable {
                    name: VARIABLE,
                    value,
                    reason: "is not of the form tcp://HOST:PORT",
                }),
            };
        }
        if launcher == Launcher::Torchrun {
            let part = |missing| variable(missing).ok_or(WorldError::Incomplete { launcher, missing });
            let (host, port) = (part("MASTER_ADDR")?, part("MASTER_PORT")?);
            let next = port.parse::<u16>().ok().and_then(|port| port.checked_add(1));
            return match next {
                Some(port) => Ok(Self::Tcp(format!("{host}:{port}"))),
                None => Err(WorldError::Variable {
                    name: "MASTER_PORT",
                    value: port,
                    reason: "is no port with another one behind it",
                }),
            };
        }
        match place.is_one_machine {
            true => Ok(Self::Local(format!(
                "hipcl-world-{}-{}",
                rustix::process::getuid().as_raw(),
                rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get()),
            ))),
            false => Err(WorldError::NoMeeting { launcher }),
        }
    }

    pub(super) fn at(&self) -> String {
        match self {
            Self::Local(name) => format!("the socket @{name}"),
            Self::Tcp(at) => format!("tcp://{at}"),
        }
    }

    fn failed(&self, call: &'static str) -> impl Fn(io::Error) -> WorldError {
        let at = self.at();
        move |source| WorldError::Socket {
            call,
            at: at.clone(),
            source,
        }
    }

    /// Gives the bytes to all other processes, and returns the connections to them by rank.
    pub(super) fn give(
        &self,
        place: &Place,
        time: u32,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<Vec<RankLine>, WorldError> {
        if bytes.len() > MOST_BYTES {
            return Err(WorldError::TooLarge {
                bytes: bytes.len(),
                most: MOST_BYTES,
            });
        }
        let deadline = deadline::after(limit);
        let accept = self.listen()?;
        let mut came = vec![false; place.size];
        came[0] = true;
        let mut lines = Vec::new();
        while came.contains(&false) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let absent: Vec<String> = (0..place.size)
                    .filter(|&rank| !came[rank])
                    .map(|rank| rank.to_string())
                    .collect();
                return Err(WorldError::Late {
                    rank: 0,
                    limit,
                    at: self.at(),
                    absent: format!("rank {}", absent.join(", ")),
                });
            }
            let Some(mut line) = accept().map_err(self.failed("accepting a process"))? else {
                std::thread::sleep(PAUSE.min(left));
                continue;
            };
            // A connection that breaks off, or greets otherwise, does not count.
            let Ok(hello) = read_hello(&mut *line, deadline::after(PATIENCE.min(left))) else {
                continue;
            };
            // It has these bytes, and comes again until the others have them too.
            if hello.is_early(place.size, time, &came) {
                continue;
            }
            if let Some(reason) = hello.differs(place.size, time, &came) {
                _ = line
                    .write_all(&[OTHERS])
                    .and_then(|()| write_bytes(&mut *line, reason.as_bytes()));
                return Err(WorldError::Disagree {
                    rank: 0,
                    at: self.at(),
                    reason,
                });
            }
            let told = line.write_all(&[WELCOME]).and_then(|()| write_bytes(&mut *line, bytes));
            if told.is_ok() {
                came[hello.rank as usize] = true;
                lines.push((hello.rank as usize, line));
            }
        }
        Ok(lines)
    }

    /// Gets the bytes from the first process, and the connection to it.
    pub(super) fn get(
        &self,
        place: &Place,
        time: u32,
        limit: Duration,
    ) -> Result<(Vec<u8>, Box<dyn Line>), WorldError> {
        let deadline = deadline::after(limit);
        let hello = Hello {
            rank: place.rank as u32,
            size: place.size as u32,
            time,
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WorldError::Late {
                    rank: place.rank,
                    limit,
                    at: self.at(),
                    absent: "rank 0".to_owned(),
                });
            }
            // It may not listen yet, or still listen for the time before.
            let met = self.connect(left).and_then(|mut line| {
                let answer = hello.exchange(&mut *line, left)?;
                Ok((answer, line))
            });
            match met {
                Ok((Ok(bytes), line)) => return Ok((bytes, line)),
                Ok((Err(reason), _)) => {
                    return Err(WorldError::Disagree {
                        rank: place.rank,
                        at: self.at(),
                        reason,
                    });
                }
                Err(_) => std::thread::sleep(PAUSE.min(left)),
            }
        }
    }

    /// Listens, and gives the function that accepts the next connection.
    fn listen(&self) -> Result<Accept, WorldError> {
        let failed = self.failed("listening");
        match self {
            Self::Local(name) => {
                let bind = || {
                    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                };
                let listener = bind().map_err(failed)?;
                Ok(Box::new(move || {
                    let Some((line, _)) = come(listener.accept())? else {
                        return Ok(None);
                    };
                    let is_ours = socket_peercred(&line)?.uid == rustix::process::getuid();
                    Ok(is_ours.then(|| Box::new(line) as Box<dyn Line>))
                }))
            }
            Self::Tcp(at) => {
                let bind = || {
                    let listener = TcpListener::bind(at)?;
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                };
                let listener = bind().map_err(failed)?;
                Ok(Box::new(move || {
                    let came = come(listener.accept())?;
                    Ok(came.map(|(line, _)| Box::new(line) as Box<dyn Line>))
                }))
            }
        }
    }

    fn connect(&self, left: Duration) -> io::Result<Box<dyn Line>> {
        match self {
            Self::Local(name) => {
                let line = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
                if socket_peercred(&line)?.uid != rustix::process::getuid() {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                Ok(Box::new(line))
            }
            Self::Tcp(at) => {
                let mut last = io::ErrorKind::NotFound.into();
                for address in at.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, left) {
                        Ok(line) => return Ok(Box::new(line)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

/// The accepted connection, or `None` if there is no new one.
fn come<T>(accepted: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    match accepted {
        Ok(line) => Ok(Some(line)),
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Hello {
    fn is_early(&self, size: usize, time: u32, came: &[bool]) -> bool {
        let has_come = came.get(self.rank as usize) == Some(&true);
        has_come && self.size as usize == size && time.checked_add(1) == Some(self.time)
    }

    /// What differs from the first process's view.
    fn differs(&self, size: usize, time: u32, came: &[bool]) -> Option<String> {
        let Self {
            rank,
            size: others,
            time: their_time,
        } = *self;
        if others as usize != size {
            return Some(format!("rank {rank} counts {others} processes, rank 0 counts {size}"));
        }
        if their_time != time {
            return Some(format!(
                "rank {rank} comes for time {their_time}, rank 0 for time {time}"
            ));
        }
        match came.get(rank as usize) {
            None => Some(format!("there is no rank {rank} among {size}")),
            Some(true) => Some(format!("two processes are rank {rank}")),
            Some(false) => None,
        }
    }

    /// The bytes, or why the first process refuses.
    fn exchange(&self, line: &mut dyn Line, left: Duration) -> io::Result<Result<Vec<u8>, String>> {
        line.limit(left)?;
        let mut hello = GREETING.to_vec();
        for number in [self.rank, self.size, self.time] {
            hello.extend(number.to_be_bytes());
        }
        line.write_all(&hello)?;
        let mut answer = [0];
        line.read_exact(&mut answer)?;
        let bytes = read_bytes(line)?;
        Ok(match answer {
            [WELCOME] => Ok(bytes),
            _ => Err(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }
}

fn read_hello(line: &mut dyn Line, deadline: Instant) -> io::Result<Hello> {
    let mut bytes = [0; GREETING.len() + 12];
    let mut read = 0;
    while read < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        line.limit(left)?;
        match line.read(&mut bytes[read..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => read += more,
        }
    }
    let Some(numbers) = bytes.strip_prefix(GREETING) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let number = |at: usize| u32::from_be_bytes(std::array::from_fn(|byte| numbers[4 * at + byte]));
    Ok(Hello {
        rank: number(0),
        size: number(1),
        time: number(2),
    })
}

fn write_bytes(line: &mut dyn Line, bytes: &[u8]) -> io::Result<()> {
    line.write_all(&(bytes.len() as u64).to_be_bytes())?;
    line.write_all(bytes)
}

fn read_bytes(line: &mut dyn Line) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    line.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    let mut bytes = Vec::new();
    line.take(length.min(MOST_BYTES as u64)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
