//! A rank whose communicator's ranks meet in another process.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use crate::meeting::{Meeting, Wait};
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
    failure: Arc<OnceLock<Arc<Failure>>>,
}

impl Remote {
    /// Takes a rank's place, without waiting for the others.
    pub(crate) fn join(address: Address, id: u64, (ranks, rank): (usize, usize), device: i32) -> Outcome<Self> {
        let ask = || {
            let mut presence = connect(address)?;
            let request = Request::Join {
                id,
                // Both were numbers of the C caller's.
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
        let failure = Arc::default();
        let watched = presence
            .try_clone()
            .map_err(|error| Failure::remote(error.to_string()))?;
        std::thread::spawn({
            let failure = Arc::clone(&failure);
            move || watch(watched, address, &failure)
        });
        Ok(Self {
            address,
            key,
            ranks,
            presence,
            failure,
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
        let first = |failure: Failure| self.failure.get_or_init(|| Arc::new(failure)).clone();
        match sent.and_then(|mut stream| wire::receive(&mut stream)) {
            Ok((Reply::Failed(failure), _)) => Err(first(failure.failure())),
            Ok(reply) => Ok(reply),
            Err(_) => Err(first(ended(self.address))),
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
        self.failure.get().cloned()
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
        // Without an answer nobody waits for it.
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

    fn destroy(&self, _rank: usize) {
        _ = self.ask(Action::Destroy);
    }

    fn abort(&self, _rank: usize) {
        _ = self.ask(Action::Abort);
    }

    fn fail_with(&self, failure: Failure) {
        _ = self.ask(Action::Fail(TellsFailure::of(&failure)));
        self.failure.get_or_init(|| Arc::new(failure));
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

/// Keeps the failure that comes, or that the other process ended.
fn watch(mut presence: UnixStream, address: Address, failure: &OnceLock<Arc<Failure>>) {
    let told = match wire::receive(&mut presence) {
        Ok((Reply::Failed(failure), _)) => failure.failure(),
        _ => ended(address),
    };
    failure.get_or_init(|| Arc::new(told));
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
