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
use crate::status::{Failure, Outcome};

/// One rank of a communicator.
pub(crate) struct Rank {
    pub(crate) clique: Arc<Clique>,
    pub(crate) rank: usize,
    pub(crate) device: c_int,
}

static RANKS: LazyLock<Mutex<HashMap<usize, Arc<Rank>>>> = LazyLock::new(Mutex::default);
static NEXT_HANDLE: AtomicUsize = AtomicUsize::new(0x1000);

type Id = [c_char; 128];

/// The ids that were made, with the ranks that found each other so far.
static IDS: LazyLock<Mutex<HashMap<Id, Option<Arc<Clique>>>>> = LazyLock::new(Mutex::default);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// How an id begins: those of other libraries do not.
const MARK: &[u8; 16] = b"hip-host-rccl id";

pub(crate) fn new_id() -> ncclUniqueId {
    let mut id = ncclUniqueId::default();
    let process = u64::from(std::process::id()).to_ne_bytes();
    let number = NEXT_ID.fetch_add(1, Ordering::Relaxed).to_ne_bytes();
    let bytes = MARK.iter().chain(&process).chain(&number);
    for (byte, value) in id.internal.iter_mut().zip(bytes) {
        *byte = value.cast_signed();
    }
    IDS.lock().insert(id.internal, None);
    id
}

/// More than a process has devices for.
const MOST: usize = 1 << 12;

/// Takes a rank's place, without waiting for the others.
pub(crate) fn join(id: &ncclUniqueId, ranks: c_int, rank: c_int, device: c_int) -> Outcome<Arc<Rank>> {
    let (Ok(count), Ok(rank)) = (usize::try_from(ranks), usize::try_from(rank)) else {
        return Err(Failure::argument(format!("ncclCommInitRank: rank {rank} of {ranks}")));
    };
    if rank >= count {
        return Err(Failure::argument(format!("ncclCommInitRank: rank {rank} of {count}")));
    }
    if count > MOST {
        return Err(Failure::argument(format!(
            "ncclCommInitRank: {count} ranks; the ranks are threads of this process, at most {MOST}"
        )));
    }
    let mut ids = IDS.lock();
    let Some(found) = ids.get_mut(&id.internal) else {
        return Err(Failure::argument(
            "ncclCommInitRank: the id was not made in this process, or its communicator is complete",
        ));
    };
    let clique = found.get_or_insert_with(|| Clique::new(count)).clone();
    clique.join(rank, count, device)?;
    // A failed one stays, to tell the ranks that are still to come.
    if clique.is_complete() {
        ids.remove(&id.internal);
    }
    Ok(Arc::new(Rank { clique, rank, device }))
}

/// All ranks at once.
pub(crate) fn all(devices: &[c_int]) -> Outcome<Vec<Arc<Rank>>> {
    let clique = Clique::new(devices.len());
    let ranks = devices.iter().enumerate().map(|(rank, &device)| {
        clique.join(rank, devices.len(), device)?;
        let clique = clique.clone();
        Ok(Arc::new(Rank { clique, rank, device }))
    });
    ranks.collect()
}

pub(crate) fn publish(rank: Arc<Rank>) -> ncclComm_t {
    let handle = NEXT_HANDLE.fetch_add(1, Ordering::Relaxed);
    RANKS.lock().insert(handle, rank);
    handle as ncclComm_t
}

pub(crate) fn find(comm: ncclComm_t) -> Outcome<Arc<Rank>> {
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
    let rank = find(comm).ok()?;
    // The communicator keeps its first failure, so the text outlives this reference.
    let failure = rank.clique.failure()?;
    Some(failure.text.as_ptr())
}
