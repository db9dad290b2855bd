//! A thread that receives packets and hands batches over.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use parking_lot::Mutex;
use rustix::net::sockopt;

use super::assembler::{Assembler, Batch, Storage};
use super::{Counts, Geometry};
use crate::{Error, Result};

/// Packets that one system call takes at most.
const AT_ONCE: usize = 32;
/// Longer than any packet, so one that is too long is seen as such.
const PLACE: usize = 1 << 16;
/// How often the thread looks up where no packet comes.
const TICK: Duration = Duration::from_millis(50);
/// What is asked of the kernel for packets that wait; it may give less (`net.core.rmem_max`).
const SOCKET_BUFFER: usize = 32 << 20;

/// What arrived, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Received {
    /// What arrived, and what became of it.
    pub counts: Counts,
    /// From the first packet that was accepted to the last.
    pub time: Duration,
}

/// Batches from a socket, in order.
#[derive(Debug)]
pub struct Receiver<S: Send + 'static> {
    address: SocketAddr,
    socket_buffer: usize,
    ready: mpsc::Receiver<Result<Batch<S>>>,
    back: mpsc::Sender<S>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    received: Mutex<Received>,
}

impl<S: Storage + Send + 'static> Receiver<S> {
    /// Binds the address and starts to receive into this memory. After `limit` without a packet that could be used, it
    /// hands over what there is and ends.
    ///
    /// # Errors
    /// The address can't be bound.
    pub fn start(address: SocketAddr, geometry: Geometry, storage: Vec<S>, limit: Duration) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::input(format!(
                "cannot receive on {address}: {error}; name an address of this machine and a free port, or port 0"
            ))
        };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        socket.set_read_timeout(Some(TICK)).map_err(failed)?;
        // less is no error: what it costs is counted
        let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        let socket_buffer = sockopt::socket_recv_buffer_size(&socket).map_err(|error| failed(error.into()))?;
        let (ready_in, ready) = mpsc::channel();
        let (back, back_out) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let worker = Worker {
            socket,
            assembler: Assembler::new(geometry, storage),
            ready: ready_in,
            back: back_out,
            shared: Arc::clone(&shared),
            limit,
            source: None,
            first: None,
            last: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("radar receiver".into())
            .spawn(move || worker.run())
            .map_err(failed)?;
        Ok(Self {
            address,
            socket_buffer,
            ready,
            back,
            shared,
            thread: Some(thread),
        })
    }

    /// The next batch, or `None` when the time limit has passed.
    ///
    /// # Errors
    /// Receiving failed.
    pub fn next(&self) -> Result<Option<Batch<S>>> {
        self.ready.recv().ok().transpose()
    }

    /// Gives the memory of a batch back.
    pub fn give_back(&self, storage: S) {
        // after its end the thread needs none
        let _ = self.back.send(storage);
    }
}

impl<S: Send + 'static> Receiver<S> {
    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that the kernel keeps for packets that wait, its own overhead included.
    pub fn socket_buffer(&self) -> usize {
        self.socket_buffer
    }

    /// What arrived so far.
    pub fn received(&self) -> Received {
        *self.shared.received.lock()
    }
}

impl<S: Send + 'static> Drop for Receiver<S> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // a panic there was reported by its own message
            let _ = thread.join();
        }
    }
}

struct Worker<S> {
    socket: UdpSocket,
    assembler: Assembler<S>,
    ready: mpsc::Sender<Result<Batch<S>>>,
    back: mpsc::Receiver<S>,
    shared: Arc<Shared>,
    limit: Duration,
    /// Where the first packet that was accepted came from.
    source: Option<SocketAddr>,
    /// When the first packet was accepted, and the last.
    first: Option<Instant>,
    last: Instant,
}

impl<S: Storage> Worker<S> {
    fn run(mut self) {
        if let Err(error) = self.receive() {
            // The caller that waits for a batch gets it; without one, nothing is lost.
            let _ = self.ready.send(Err(error));
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut places = vec![0; AT_ONCE * PLACE];
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(AT_ONCE, None);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let mut slices: Vec<[IoSliceMut<'_>; 1]> = places
                .chunks_exact_mut(PLACE)
                .map(|place| [IoSliceMut::new(place)])
                .collect();
            let flags = MsgFlags::MSG_WAITFORONE;
            match recvmmsg(self.socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None) {
                Ok(messages) => {
                    // now, not before the wait for packets: they may need it
                    while let Ok(storage) = self.back.try_recv() {
                        self.assembler.give_back(storage);
                    }
                    for message in messages {
                        let bytes: &[u8] = match message.iovs().next() {
                            Some(bytes) => bytes,
                            None => &[],
                        };
                        take(&mut self.assembler, &mut self.source, message.address, bytes)?;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => {
                    return Err(Error::input(format!(
                        "cannot receive packets: {error}; check the network interface, and start again"
                    )));
                }
            }
            self.publish();
            let ended = self.last.elapsed() > self.limit;
            if ended {
                self.assembler.flush()?;
                self.publish();
            }
            while let Some(batch) = self.assembler.take() {
                // the receiver may be gone
                let _ = self.ready.send(Ok(batch));
            }
            if ended {
                break;
            }
        }
        Ok(())
    }

    fn publish(&mut self) {
        let counts = self.assembler.counts();
        let mut received = self.shared.received.lock();
        if counts.accepted > received.counts.accepted {
            self.last = Instant::now();
            let first = *self.first.get_or_insert(self.last);
            received.time = self.last - first;
        }
        received.counts = counts;
    }
}

/// Address and port; the rest of what the kernel writes need not be the same each time.
fn origin(from: SockaddrStorage) -> Option<SocketAddr> {
    if let Some(&v4) = from.as_sockaddr_in() {
        return Some(SocketAddr::V4(v4.into()));
    }
    from.as_sockaddr_in6().map(|&v6| SocketAddr::V6(v6.into()))
}

/// Gives a packet to the assembler, if it comes from where the first one did.
fn take<S: Storage>(
    assembler: &mut Assembler<S>,
    source: &mut Option<SocketAddr>,
    from: Option<SockaddrStorage>,
    bytes: &[u8],
) -> Result<()> {
    let from = from.and_then(origin);
    if source.is_some() && *source != from {
        assembler.refuse_foreign();
    } else if assembler.accept(bytes)? {
        *source = from;
    }
    Ok(())
}
