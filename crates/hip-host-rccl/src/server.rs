//! The ranks of other processes, in the process that made the id.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;

use crate::clique::Clique;
use crate::comm;
use crate::meeting::Meeting;
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

/// A call waits for those of other connections, so each has a thread. One whose peer is gone has nobody to tell.
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
            Ok((clique, rank)) => stay(stream, Served { clique, rank }),
            Err(failure) => wire::send(stream, &Reply::failed(&failure), &[]),
        },
        Request::Of { key, action } => {
            let served = SERVED.lock().get(&key).cloned();
            let (reply, result) = match served {
                Some(Served { clique, rank }) => act(&clique, rank, action, &memory),
                None => (
                    Reply::failed(&Failure::argument("the rank's communicator has ended")),
                    Vec::new(),
                ),
            };
            wire::send(stream, &reply, &result)
        }
    }
}

/// Stays with a rank as long as it has a connection.
fn stay(stream: &mut UnixStream, served: Served) -> io::Result<()> {
    let key = random();
    SERVED.lock().insert(key, served.clone());
    let told = wire::send(stream, &Reply::Joined(key), &[]).and_then(|()| stream.try_clone());
    let told = told.and_then(|watcher| {
        served.clique.watch(watcher);
        stream.read(&mut [0])
    });
    SERVED.lock().remove(&key);
    served.clique.lose(served.rank);
    told.map(drop)
}

fn act(clique: &Clique, rank: usize, action: Action, memory: &[u8]) -> (Reply, Vec<u8>) {
    let outcome = match action {
        Action::WaitComplete => clique.wait_complete().map(|()| Reply::Done),
        Action::Issue(told) => clique.issue(rank, &told.operation()).map(Reply::Place),
        Action::Arrive(place, told) => return call(clique, (rank, place), told.operation(), memory),
        Action::Leave => {
            clique.leave(rank);
            Ok(Reply::Done)
        }
        Action::Destroy => {
            clique.destroy(rank);
            Ok(Reply::Done)
        }
        Action::Abort => {
            clique.abort(rank);
            Ok(Reply::Done)
        }
        Action::Fail(failure) => {
            clique.fail_with(failure.failure());
            Ok(Reply::Done)
        }
    };
    (outcome.unwrap_or_else(|failure| Reply::failed(&failure)), Vec::new())
}

/// A call on copies of the rank's memory. What it wrote goes back.
fn call(clique: &Clique, (rank, place): (usize, Place), operation: Operation, memory: &[u8]) -> (Reply, Vec<u8>) {
    let refuse = |what: String| {
        let failure = Failure::argument(what);
        clique.fail_with(failure.clone());
        (Reply::failed(&failure), Vec::new())
    };
    let bytes = operation.bytes(rank, clique.ranks());
    let can_be = place.fits(rank, &operation) && operation.root < clique.ranks() && operation.has_arithmetic();
    let Some((read, written)) = bytes.filter(|_| can_be) else {
        return refuse(format!("{}: no such call", operation.describe()));
    };
    let mut result = Vec::new();
    if read != memory.len() || result.try_reserve_exact(written).is_err() {
        return refuse(format!(
            "{}: rank {rank} sent {} bytes",
            operation.describe(),
            memory.len()
        ));
    }
    result.resize(written, 0_u8);
    let operation = Operation {
        send: memory.as_ptr().addr(),
        recv: result.as_mut_ptr().expose_provenance(),
        ..operation
    };
    memory.as_ptr().expose_provenance();
    let ticket = clique.enter(rank, place, operation);
    match clique.wait(place, &operation, &ticket) {
        Ok(()) if ticket.is_done() => (Reply::Done, result),
        Ok(()) => (Reply::Aborted, Vec::new()),
        Err(failure) => (Reply::failed(&failure), Vec::new()),
    }
}
