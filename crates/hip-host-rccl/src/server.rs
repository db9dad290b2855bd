//! The ranks of other processes, in the process that made the id.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;

use crate::clique::{Clique, Part};
use crate::comm;
use crate::meeting::{Meeting, Wish};
use crate::operation::Operation;
use crate::place::Place;
use crate::status::{Failure, Outcome};
use crate::wire::{self, Action, Address, Reply, Request};

/// The ranks of other processes, by keys that only they know.
static SERVED: LazyLock<Mutex<HashMap<u64, Served>>> = LazyLock::new(Mutex::default);

#[derive(Clone)]
struct Served {
    clique: Arc<Clique>,
    rank: usize,
}

/// Where this process listens, from the first id that it makes.
static ADDRESS: OnceLock<Outcome<Address>> = OnceLock::new();

/// Starts to listen.
pub(crate) fn address() -> Outcome<Address> {
    let start = || {
        let address = Address {
            process: std::process::id().into(),
            secret: random(),
        };
        let listener = UnixListener::bind_addr(&address.socket()?)?;
        std::thread::Builder::new()
            .name("rccl ranks".to_owned())
            .spawn(move || listener.incoming().flatten().for_each(accept))?;
        Ok(address)
    };
    let started = ADDRESS.get_or_init(|| {
        start()
            .map_err(|error: io::Error| Failure::system(format!("ncclGetUniqueId: no socket for the ranks: {error}")))
    });
    started.clone()
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Whether this process listens there.
pub(crate) fn is_here(address: Address) -> bool {
    matches!(ADDRESS.get(), Some(Ok(own)) if *own == address)
}

/// Serves each connection in a thread of its own, because a call waits for those of other connections. An error means
/// that the peer has hung up, and needs no answer.
fn accept(mut stream: UnixStream) {
    std::thread::spawn(move || _ = serve(&mut stream));
}

fn serve(stream: &mut UnixStream) -> io::Result<()> {
    let (request, memory) = wire::receive(stream)?;
    match request {
        Request::Join {
            id,
            ranks,
            rank,
            device,
        } => match comm::join_here(id, (ranks, rank, device)) {
            Ok((clique, rank)) => stay(stream, Served { clique, rank }, Reply::Joined),
            Err(failure) => wire::send(stream, &Reply::failed(&failure), &[]),
        },
        Request::Split { key, number, wish } => match part(key, number, wish) {
            Ok(Some((clique, rank))) => {
                let ranks = clique.ranks();
                stay(stream, Served { clique, rank }, |key| {
                    Reply::Part(Some((key, rank, ranks)))
                })
            }
            Ok(None) => wire::send(stream, &Reply::Part(None), &[]),
            Err(failure) => wire::send(stream, &Reply::failed(&failure), &[]),
        },
        Request::Of { key, action } => {
            let served = SERVED.lock().get(&key).cloned();
            let reply = match (served, action) {
                (Some(served), Action::Arrive(place, told)) => {
                    return call(stream, &served, (place, told.operation()), &memory);
                }
                (Some(Served { clique, rank }), action) => act(&clique, rank, action),
                (None, _) => Err(ended()),
            };
            wire::send(stream, &reply.unwrap_or_else(|failure| Reply::failed(&failure)), &[])
        }
    }
}

fn part(key: u64, number: u64, wish: Wish) -> Outcome<Part> {
    let served = SERVED.lock().get(&key).cloned();
    let Served { clique, rank } = served.ok_or_else(ended)?;
    clique.ask_part(rank, number, wish, false)?;
    clique.take_part(rank, number)
}

fn ended() -> Failure {
    Failure::argument("the rank's communicator has ended")
}

/// Stays with a rank as long as it has a connection.
fn stay(stream: &mut UnixStream, served: Served, reply: impl FnOnce(u64) -> Reply) -> io::Result<()> {
    let key = random();
    SERVED.lock().insert(key, served.clone());
    let told = wire::send(stream, &reply(key), &[]).and_then(|()| stream.try_clone());
    let told = told.and_then(|watcher| {
        served.clique.watch(watcher);
        stream.read(&mut [0])
    });
    SERVED.lock().remove(&key);
    served.clique.lose(served.rank);
    told.map(drop)
}

fn act(clique: &Clique, rank: usize, action: Action) -> Outcome<Reply> {
    match action {
        Action::WaitComplete => clique.wait_complete()?,
        Action::Issue(told) => return clique.issue(rank, &told.operation()).map(Reply::Place),
        Action::Leave => clique.leave(rank),
        Action::Destroy => clique.take_out(rank),
        Action::Abort => clique.abort(rank),
        Action::Fail(failure) => clique.fail_with(failure.failure()),
        Action::Arrive(..) => return Err(Failure::usage("a call comes with its memory")),
    }
    Ok(Reply::Done)
}

/// A call on copies of the rank's memory. What it wrote goes back.
fn call(
    stream: &mut UnixStream,
    Served { clique, rank }: &Served,
    (place, operation): (Place, Operation),
    memory: &[u8],
) -> io::Result<()> {
    let mut result = match room(clique, (*rank, place), &operation, memory) {
        Ok(result) => result,
        Err(failure) => {
            clique.fail_with(failure.clone());
            return wire::send(stream, &Reply::failed(&failure), &[]);
        }
    };
    let operation = Operation {
        send: memory.as_ptr().expose_provenance(),
        recv: result.as_mut_ptr().expose_provenance(),
        ..operation
    };
    let ticket = clique.serve(*rank, place, operation);
    let (reply, result) = match clique.wait(place, &operation, &ticket) {
        Ok(()) if ticket.is_done() => (Reply::Done, &result[..]),
        Ok(()) => (Reply::Aborted, &[][..]),
        Err(failure) => (Reply::failed(&failure), &[][..]),
    };
    let told = wire::send(stream, &reply, result);
    clique.told(&ticket);
    told
}

/// Memory for what the call writes, if it can be one.
fn room(clique: &Clique, (rank, place): (usize, Place), operation: &Operation, memory: &[u8]) -> Outcome<Vec<u8>> {
    let bytes = operation.bytes(rank, clique.ranks());
    let can_be = place.fits(rank, operation) && operation.root < clique.ranks() && operation.has_arithmetic();
    let Some((read, written)) = bytes.filter(|_| can_be) else {
        return Err(Failure::argument(format!("{}: no such call", operation.describe())));
    };
    let mut result = Vec::new();
    if read != memory.len() || result.try_reserve_exact(written).is_err() {
        let text = format!("{}: rank {rank} sent {} bytes", operation.describe(), memory.len());
        return Err(Failure::argument(text));
    }
    result.resize(written, 0);
    Ok(result)
}
