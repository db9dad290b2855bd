//! Sees a process end before its work is done.
//!
//! Each process keeps a connection to the first one, which closes with the process, however it ends. The first one tells
//! the others.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};

use super::WorldError;
use super::meeting::{Line, RankLine};

/// Said by a process whose work is done, and to all when that of all is.
const LEFT: u8 = 1;
/// Said of another process; its rank follows.
const LOST: u8 = 2;

/// What a process tells its thread.
const LEAVE: u64 = 1;
const ABANDON: u64 = 1 << 32;

/// A process among those that watch each other, see [`World::watch`](super::World::watch).
///
/// Dropped without [`leave`](Self::leave), it counts as ended before its work was done.
#[derive(Debug)]
pub struct Watch {
    rank: usize,
    /// None for a process alone.
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Thread {
    orders: Arc<OwnedFd>,
    /// Whether all have left, or who was lost.
    end: Receiver<Result<(), usize>>,
}

impl Watch {
    pub(super) fn alone() -> Self {
        Self { rank: 0, thread: None }
    }

    pub(super) fn start(
        rank: usize,
        lines: Vec<RankLine>,
        lost: impl FnOnce(usize) + Send + 'static,
    ) -> io::Result<Self> {
        let orders = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let others = lines.into_iter().map(|(rank, line)| Other {
            rank,
            line,
            has_left: false,
        });
        let mut watcher = Watcher {
            is_first: rank == 0,
            has_left: false,
            others: others.collect(),
            orders: Arc::clone(&orders),
        };
        for other in &watcher.others {
            other.line.keep_alive()?;
        }
        let (told, end): (SyncSender<_>, _) = sync_channel(1);
        let body = move || {
            let Some(end) = watcher.run() else { return };
            // The connections close before `lost` runs, which need not return.
            drop(watcher);
            // The owner may be gone.
            _ = told.send(end);
            if let Err(rank) = end {
                lost(rank);
            }
        };
        std::thread::Builder::new().name("hipcl-watch".to_owned()).spawn(body)?;
        Ok(Self {
            rank,
            thread: Some(Thread { orders, end }),
        })
    }

    /// Says that the work of this process is done, and waits until that of all is.
    ///
    /// # Errors
    ///
    /// [`WorldError::Lost`] for a process that ended before, [`WorldError::Late`] if one has not left within `limit`.
    pub fn leave(mut self, limit: Duration) -> Result<(), WorldError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        thread.order(LEAVE);
        match thread.end.recv_timeout(limit) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(rank)) => Err(WorldError::Lost { rank }),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                thread.order(ABANDON);
                Err(WorldError::Late {
                    rank: self.rank,
                    limit,
                    at: "the end".to_owned(),
                    absent: "the work of the other ranks".to_owned(),
                })
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.order(ABANDON);
        }
    }
}

impl Thread {
    fn order(&self, order: u64) {
        // It fails only for a count near 2^64.
        _ = write(&*self.orders, &order.to_ne_bytes());
    }
}

/// The connection to another process.
struct Other {
    rank: usize,
    line: Box<dyn Line>,
    has_left: bool,
}

/// The thread's own.
struct Watcher {
    is_first: bool,
    has_left: bool,
    others: Vec<Other>,
    orders: Arc<OwnedFd>,
}

/// What came over a connection.
enum News {
    Left,
    Lost(usize),
}

impl Watcher {
    /// How it ended: all have left, or one was lost; None if this process abandons the others.
    fn run(&mut self) -> Option<Result<(), usize>> {
        loop {
            let (ordered, ready) = self.wait();
            if ordered {
                let mut order = [0; 8];
                let order = read(&*self.orders, &mut order).map(|_| u64::from_ne_bytes(order));
                if order.is_ok_and(|order| order >= ABANDON) {
                    return None;
                }
                self.has_left = true;
                if !self.is_first && self.others[0].line.write_all(&[LEFT]).is_err() {
                    return Some(Err(0));
                }
            }
            for at in ready {
                let other = &mut self.others[at];
                match other.hear() {
                    Ok(News::Left) => other.has_left = true,
                    Ok(News::Lost(rank)) => return Some(Err(rank)),
                    // What it had to do is done.
                    Err(_) if other.has_left => {}
                    Err(_) => {
                        let rank = other.rank;
                        self.tell(&lost(rank));
                        return Some(Err(rank));
                    }
                }
            }
            let all_left = self.others.iter().all(|other| other.has_left);
            if all_left && (self.has_left || !self.is_first) {
                if self.is_first {
                    self.tell(&[LEFT]);
                }
                return Some(Ok(()));
            }
        }
    }

    /// Whether there is an order, and which of the others said something or closed.
    fn wait(&self) -> (bool, Vec<usize>) {
        loop {
            let waiting = self.others.iter().enumerate().filter(|(_, other)| !other.has_left);
            let places: Vec<usize> = waiting.clone().map(|(at, _)| at).collect();
            let lines = waiting.map(|(_, other)| PollFd::new(&other.line, PollFlags::IN));
            let orders = PollFd::new(&*self.orders, PollFlags::IN);
            let mut fds: Vec<_> = std::iter::once(orders).chain(lines).collect();
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) => continue,
                // The kernel has no memory for the table of descriptors.
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
            }
            let mut said = fds.iter().map(|fd| !fd.revents().is_empty());
            let ordered = said.next().unwrap_or(false);
            let ready = places.into_iter().zip(said).filter(|(_, said)| *said);
            return (ordered, ready.map(|(at, _)| at).collect());
        }
    }

    /// Tells all others; those that are gone need it no more.
    fn tell(&mut self, message: &[u8]) {
        if self.is_first {
            for other in &mut self.others {
                _ = other.line.write_all(message);
            }
        }
    }
}

impl Other {
    fn hear(&mut self) -> io::Result<News> {
        let mut what = [0];
        self.line.read_exact(&mut what)?;
        match what {
            [LEFT] => Ok(News::Left),
            [LOST] => {
                let mut rank = [0; 4];
                self.line.read_exact(&mut rank)?;
                Ok(News::Lost(u32::from_be_bytes(rank) as usize))
            }
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

fn lost(rank: usize) -> Vec<u8> {
    let mut message = vec![LOST];
    message.extend((rank as u32).to_be_bytes());
    message
}
