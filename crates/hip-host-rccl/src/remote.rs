//! A rank whose communicator's ranks meet in another process.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::meeting::{Meeting, Parting, Wait, Wish};
use crate::operation::Operation;
use crate::place::Place;
use crate::status::{Failure, Outcome};
use crate::transfer;
use crate::wire::{self, Action, Address, Reply, Request, TellsFailure, Told};

/// One rank, with a connection for as long as it is there.
pub(crate) struct Remote {
    address: Address,
    /// By which the other process knows it.
    key: u64,
    ranks: usize,
    presence: UnixStream,
    fate: Arc<Fate>,
}

/// What became of the communicator, as far as this process knows.
#[derive(Default)]
struct Fate {
    end: Mutex<Option<End>>,
    known: Condvar,
}

#[derive(Clone)]
struct End {
    failure: Arc<Failure>,
    /// The other process left in order: only calls that need it fail.
    in_order: bool,
}

impl Fate {
    /// The first end counts.
    fn set(&self, failure: Failure, in_order: bool) -> Arc<Failure> {
        let mut end = self.end.lock();
        let failure = Arc::new(failure);
        let end = end.get_or_insert(End { failure, in_order });
        self.known.notify_all();
        end.failure.clone()
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        let end = self.end.lock();
        end.as_ref().filter(|end| !end.in_order).map(|end| end.failure.clone())
    }

    /// Why the other process does not answer, which its first connection tells at about the same time.
    fn reason(&self, address: Address) -> Arc<Failure> {
        let mut end = self.end.lock();
        if end.is_none() {
            self.known.wait_for(&mut end, Duration::from_secs(1));
        }
        let told = end.as_ref().map(|end| end.failure.clone());
        told.unwrap_or_else(|| Arc::new(ended(address)))
    }
}

impl Remote {
    /// Takes a rank's place, without waiting for the others.
    pub(crate) fn join(address: Address, id: u64, (ranks, rank): (usize, usize), device: i32) -> Outcome<Self> {
        let ask = || {
            let mut presence = connect(address)?;
            let request = Request::Join {
                id,
                // The C caller gave both as such numbers.
                ranks: ranks as i32,
                rank: rank as i32,
                device,
            };
            wire::send(&mut presence, &request, &[])?;
            let (reply, _) = wire::receive(&mut presence)?;
            Ok((presence, reply))
        };
        let (presence, reply) = ask().map_err(|error: io::Error| {
            Failure::argument(format!(
                "ncclCommInitRank: the process that made the id, {}, does not answer: {error}",
                address.process
            ))
        })?;
        let key = match reply {
            Reply::Joined(key) => key,
            Reply::Failed(failure) => return Err(failure.failure()),
            _ => return Err(ended(address)),
        };
        Self::present(address, key, ranks, presence)
    }

    /// A rank that is there, with the connection that tells of its communicator.
    fn present(address: Address, key: u64, ranks: usize, presence: UnixStream) -> Outcome<Self> {
        let fate = Arc::<Fate>::default();
        let watched = presence
            .try_clone()
            .map_err(|error| Failure::remote(error.to_string()))?;
        std::thread::spawn({
            let fate = Arc::clone(&fate);
            move || watch(watched, address, &fate)
        });
        Ok(Self {
            address,
            key,
            ranks,
            presence,
            fate,
        })
    }

    fn send(&self, action: Action, memory: &[u8]) -> io::Result<UnixStream> {
        let mut stream = connect(self.address)?;
        let request = Request::Of { key: self.key, action };
        wire::send(&mut stream, &request, memory)?;
        Ok(stream)
    }

    /// The reply to a request that was sent, or the communicator's failure.
    fn reply(&self, sent: io::Result<UnixStream>) -> Result<(Reply, Vec<u8>), Arc<Failure>> {
        match sent.and_then(|mut stream| wire::receive(&mut stream)) {
            Ok((Reply::Failed(failure), _)) => Err(self.fate.set(failure.failure(), false)),
            Ok(reply) => Ok(reply),
            Err(_) => Err(self.fate.reason(self.address)),
        }
    }

    fn ask(&self, action: Action) -> Result<Reply, Arc<Failure>> {
        self.reply(self.send(action, &[])).map(|(reply, _)| reply)
    }
}

impl Meeting for Remote {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        self.fate.failure()
    }

    fn wait_complete(&self) -> Outcome {
        self.ask(Action::WaitComplete).map(drop).map_err(owned)
    }

    fn issue(&self, _rank: usize, operation: &Operation) -> Outcome<Place> {
        match self.ask(Action::Issue(Told::of(operation))).map_err(owned)? {
            Reply::Place(place) => Ok(place),
            _ => Err(ended(self.address)),
        }
    }

    fn leave(&self, _rank: usize) {
        // The call has ended here, whatever the other process answers.
        _ = self.ask(Action::Leave);
    }

    fn arrive(&self, rank: usize, place: Place, operation: Operation) -> Wait<'_> {
        // Its size was looked at when it was checked.
        let (read, written) = operation.bytes(rank, self.ranks).unwrap_or((0, 0));
        let action = Action::Arrive(place, Told::of(&operation));
        // SAFETY: the call's memory was checked for its stream, which is at this call until the wait has ended.
        let sent = self.send(action, unsafe { transfer::bytes_at(operation.send, read) });
        Box::new(move || {
            match self.reply(sent)? {
                // SAFETY: as above.
                (Reply::Done, result) if result.len() == written => unsafe {
                    transfer::write(operation.recv, &result);
                    Ok(())
                },
                (Reply::Aborted, _) => Ok(()),
                _ => Err(Arc::new(ended(self.address))),
            }
        })
    }

    fn split(self: Arc<Self>, _rank: usize, number: u64, wish: Wish) -> Parting {
        let ask = || {
            let mut stream = connect(self.address)?;
            let key = self.key;
            wire::send(&mut stream, &Request::Split { key, number, wish }, &[])?;
            Ok(stream)
        };
        let sent: io::Result<UnixStream> = ask();
        Box::new(move || {
            let reply = sent.and_then(|mut stream| Ok((wire::receive(&mut stream)?.0, stream)));
            match reply {
                Ok((Reply::Part(None), _)) => Ok(None),
                Ok((Reply::Part(Some((key, rank, ranks))), stream)) => {
                    let part = Self::present(self.address, key, ranks, stream)?;
                    Ok(Some((Arc::new(part), rank)))
                }
                Ok((Reply::Failed(failure), _)) => Err(owned(self.fate.set(failure.failure(), false))),
                Ok(_) => Err(ended(self.address)),
                Err(_) => Err(owned(self.fate.reason(self.address))),
            }
        })
    }

    fn destroy(&self, _rank: usize) {
        _ = self.ask(Action::Destroy);
    }

    fn abort(&self, _rank: usize) {
        _ = self.ask(Action::Abort);
    }

    fn fail_with(&self, failure: Failure) {
        _ = self.ask(Action::Fail(TellsFailure::of(&failure)));
        self.fate.set(failure, false);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Ends the thread that watches too.
        _ = self.presence.shutdown(Shutdown::Both);
    }
}

fn connect(address: Address) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&address.socket()?)
}

/// Records what the other process tells: a failure, or that it leaves. The end of its connection tells that it has ended.
fn watch(mut presence: UnixStream, address: Address, fate: &Fate) {
    let mut in_order = false;
    loop {
        match wire::receive(&mut presence) {
            Ok((Reply::Failed(failure), _)) => {
                fate.set(failure.failure(), false);
                return;
            }
            Ok((Reply::Left, _)) => in_order = true,
            _ => {
                fate.set(ended(address), in_order);
                return;
            }
        }
    }
}

fn ended(address: Address) -> Failure {
    Failure::remote(format!(
        "the process that made the id, {}, has ended; the ranks meet there",
        address.process
    ))
}

fn owned(failure: Arc<Failure>) -> Failure {
    (*failure).clone()
}
