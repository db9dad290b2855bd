//! Handles, and the ids by which ranks find each other.
//!
//! A handle's value is a number that is never used again and never dereferenced, so one that was destroyed is refused.

use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use rccl_sys::{ncclComm_t, ncclUniqueId};

use crate::clique::Clique;
use crate::graphs::Graphs;
use crate::meeting::{Meeting, Wish};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::server;
use crate::status::{Failure, Outcome};
use crate::wire::Address;

/// One rank of a communicator.
pub(crate) struct Rank {
    pub(crate) meeting: Arc<dyn Meeting>,
    pub(crate) rank: usize,
    pub(crate) device: c_int,
    /// Whether calls wait until they are done.
    pub(crate) blocking: bool,
    pub(crate) progress: Progress,
    pub(crate) graphs: Graphs,
    /// Splits that it made so far.
    splits: AtomicU64,
}

impl Rank {
    fn new(meeting: Arc<dyn Meeting>, rank: usize, device: c_int, blocking: bool) -> Arc<Self> {
        Arc::new(Self {
            meeting,
            rank,
            device,
            blocking,
            progress: Progress::default(),
            graphs: Graphs::default(),
            splits: AtomicU64::new(0),
        })
    }

    /// Tells where it wants to go. The returned wait ends when all ranks have told.
    pub(crate) fn split(
        &self,
        wish: Wish,
        blocking: bool,
    ) -> impl FnOnce() -> Outcome<Option<Arc<Self>>> + Send + use<> {
        let number = 1 + self.splits.fetch_add(1, Ordering::Relaxed);
        let (parting, device) = (self.meeting.clone().split(self.rank, number, wish), self.device);
        move || Ok(parting()?.map(|(meeting, rank)| Self::new(meeting, rank, device, blocking)))
    }
}

static RANKS: LazyLock<Mutex<HashMap<usize, Arc<Rank>>>> = LazyLock::new(Mutex::default);
static NEXT_HANDLE: AtomicUsize = AtomicUsize::new(0x1000);

/// The ids that were made here, with the ranks that found each other so far.
static IDS: LazyLock<Mutex<HashMap<u64, Option<Arc<Clique>>>>> = LazyLock::new(Mutex::default);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// How an id begins: those of other libraries do not. The process that made it follows, and its number there.
const MARK: &[u8; 16] = b"hip-host-rccl id";

pub(crate) fn new_id() -> Outcome<ncclUniqueId> {
    let address = server::address()?;
    let number = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let numbers = [address.process, address.secret, number].map(u64::to_ne_bytes);
    let mut id = ncclUniqueId::default();
    let bytes = MARK.iter().chain(numbers.as_flattened());
    for (byte, value) in id.internal.iter_mut().zip(bytes) {
        *byte = value.cast_signed();
    }
    IDS.lock().insert(number, None);
    Ok(id)
}

/// The process that made an id, and its number there.
fn parse(id: &ncclUniqueId) -> Option<(Address, u64)> {
    let bytes = id.internal.map(c_char::cast_unsigned);
    let numbers = bytes.strip_prefix(MARK)?.as_chunks().0;
    let [process, secret, number, rest @ ..] = numbers else {
        return None;
    };
    let [process, secret, number] = [process, secret, number].map(|bytes| u64::from_ne_bytes(*bytes));
    rest.iter()
        .all(|bytes| *bytes == [0; 8])
        .then_some((Address { process, secret }, number))
}

/// More than a machine has devices for.
const MOST: usize = 1 << 12;

/// Takes a rank's place, without waiting for the others.
pub(crate) fn join(
    id: &ncclUniqueId,
    (ranks, rank): (c_int, c_int),
    device: c_int,
    blocking: bool,
) -> Outcome<Arc<Rank>> {
    let (address, id) =
        parse(id).ok_or_else(|| Failure::argument("ncclCommInitRank: that is no id of this library"))?;
    let (meeting, rank): (Arc<dyn Meeting>, _) = if server::is_here(address) {
        let (clique, rank) = join_here(id, (ranks, rank, device))?;
        clique.stay_here();
        (clique, rank)
    } else {
        let place = place(ranks, rank)?;
        (Arc::new(Remote::join(address, id, place, device)?), place.1)
    };
    Ok(Rank::new(meeting, rank, device, blocking))
}

/// As counts, if the rank can be.
fn place(ranks: c_int, rank: c_int) -> Outcome<(usize, usize)> {
    let (Ok(count), Ok(place)) = (usize::try_from(ranks), usize::try_from(rank)) else {
        return Err(Failure::argument(format!("ncclCommInitRank: rank {rank} of {ranks}")));
    };
    if place >= count {
        return Err(Failure::argument(format!("ncclCommInitRank: rank {rank} of {count}")));
    }
    if count > MOST {
        return Err(Failure::argument(format!(
            "ncclCommInitRank: {count} ranks; the ranks are on one machine, at most {MOST}"
        )));
    }
    Ok((count, place))
}

/// Takes a rank's place, where the id was made here.
pub(crate) fn join_here(id: u64, (ranks, rank, device): (c_int, c_int, c_int)) -> Outcome<(Arc<Clique>, usize)> {
    let (count, rank) = place(ranks, rank)?;
    let mut ids = IDS.lock();
    let Some(found) = ids.get_mut(&id) else {
        return Err(Failure::argument(
            "ncclCommInitRank: the communicator of the id is complete, or there is no such id",
        ));
    };
    let clique = found.get_or_insert_with(|| Clique::new(count)).clone();
    clique.join(rank, count, device)?;
    // A failed one stays, to tell the ranks that are still to come.
    if clique.is_complete() {
        ids.remove(&id);
    }
    Ok((clique, rank))
}

/// All ranks at once.
pub(crate) fn all(devices: &[c_int]) -> Outcome<Vec<Arc<Rank>>> {
    let clique = Clique::new(devices.len());
    let ranks = devices.iter().enumerate().map(|(rank, &device)| {
        clique.join(rank, devices.len(), device)?;
        let meeting = clique.clone();
        Ok(Rank::new(meeting, rank, device, true))
    });
    ranks.collect()
}

pub(crate) fn publish(rank: Arc<Rank>) -> ncclComm_t {
    let handle = NEXT_HANDLE.fetch_add(1, Ordering::Relaxed);
    RANKS.lock().insert(handle, rank);
    handle as ncclComm_t
}

/// The rank, if its next call may be made.
pub(crate) fn find(comm: ncclComm_t) -> Outcome<Arc<Rank>> {
    let rank = find_busy(comm)?;
    rank.progress.check()?;
    Ok(rank)
}

/// The rank, whatever goes on.
pub(crate) fn find_busy(comm: ncclComm_t) -> Outcome<Arc<Rank>> {
    let found = RANKS.lock().get(&(comm as usize)).cloned();
    found.ok_or_else(unknown)
}

pub(crate) fn remove(comm: ncclComm_t) -> Outcome<Arc<Rank>> {
    let removed = RANKS.lock().remove(&(comm as usize));
    removed.ok_or_else(unknown)
}

fn unknown() -> Failure {
    Failure::argument("the communicator is null, was destroyed, or never was one")
}

/// The text of the communicator's failure; it lives as long as the handle.
pub(crate) fn failure_text(comm: ncclComm_t) -> Option<*const c_char> {
    let rank = find_busy(comm).ok()?;
    // The communicator keeps its first failure, so the text outlives this reference.
    let failure = rank.meeting.failure()?;
    Some(failure.text.as_ptr())
}
