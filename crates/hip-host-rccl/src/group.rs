//! Calls that are collected and issued at once.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;

use rccl_sys::{ncclComm_t, ncclUniqueId};

use crate::comm::{self, Rank};
use crate::issue::issue;
use crate::meeting::Wish;
use crate::operation::Operation;
use crate::status::{Failure, Outcome, from_hip};

pub(crate) const HIP: hip_sys::Api = hip_host::hip_api();

/// A call that was checked.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) rank: Arc<Rank>,
    pub(crate) operation: Operation,
    /// An address, because raw pointers are not `Send`.
    pub(crate) stream: usize,
}

/// A rank that wants to join, and where its handle goes.
pub(crate) struct Init {
    pub(crate) id: ncclUniqueId,
    pub(crate) ranks: c_int,
    pub(crate) rank: c_int,
    pub(crate) device: c_int,
    pub(crate) blocking: bool,
    pub(crate) out: *mut ncclComm_t,
}

/// A rank that wants to part, and where its new handle goes.
pub(crate) struct Split {
    pub(crate) rank: Arc<Rank>,
    pub(crate) wish: Wish,
    /// Of the new communicator.
    pub(crate) blocking: bool,
    pub(crate) out: *mut ncclComm_t,
}

#[derive(Default)]
struct Group {
    depth: usize,
    calls: Vec<Call>,
    inits: Vec<Init>,
    splits: Vec<Split>,
    failure: Option<Failure>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

pub(crate) fn start() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Issues what was collected, unless one of the calls failed. Whether some of it goes on.
pub(crate) fn end() -> Outcome<bool> {
    let group = GROUP.with_borrow_mut(|group| match group.depth {
        0 => Err(Failure::usage("ncclGroupEnd: no group was started on this thread")),
        1 => Ok(Some(std::mem::take(group))),
        _ => {
            group.depth -= 1;
            Ok(None)
        }
    })?;
    let Some(group) = group else { return Ok(false) };
    if let Some(failure) = group.failure {
        return Err(failure);
    }
    let joining = join(group.inits)?;
    let parting = part(group.splits)?;
    Ok(issue("ncclGroupEnd", group.calls)? || joining || parting)
}

/// Ends the innermost group without its calls.
pub(crate) fn give_up() {
    GROUP.with_borrow_mut(|group| match group.depth {
        0 | 1 => *group = Group::default(),
        _ => group.depth -= 1,
    });
}

/// Runs the check of a call. In a group its failure is the group's too.
pub(crate) fn checked<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let result = body();
    if let Err(failure) = &result {
        GROUP.with_borrow_mut(|group| {
            if group.depth > 0 {
                group.failure.get_or_insert_with(|| failure.clone());
            }
        });
    }
    result
}

/// Issues a call now, or at the end of the group.
pub(crate) fn submit(call: Call) -> Outcome<bool> {
    match collect(call, |group| &mut group.calls) {
        None => Ok(false),
        Some(call) => issue(call.operation.kind.call(), vec![call]),
    }
}

/// Joins now, or at the end of the group.
pub(crate) fn submit_init(init: Init) -> Outcome<bool> {
    match collect(init, |group| &mut group.inits) {
        None => Ok(false),
        Some(init) => join(vec![init]),
    }
}

/// Parts now, or at the end of the group.
pub(crate) fn submit_split(split: Split) -> Outcome<bool> {
    match collect(split, |group| &mut group.splits) {
        None => Ok(false),
        Some(split) => part(vec![split]),
    }
}

/// Gives it back if there is no group.
fn collect<T>(item: T, list: fn(&mut Group) -> &mut Vec<T>) -> Option<T> {
    GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(item);
        }
        list(group).push(item);
        None
    })
}

/// All take their places before the first waits for the others.
fn join(inits: Vec<Init>) -> Outcome<bool> {
    let joined: Outcome<Vec<_>> = inits
        .into_iter()
        .map(|init| {
            let rank = comm::join(&init.id, (init.ranks, init.rank), init.device, init.blocking)?;
            Ok((rank, init.out))
        })
        .collect();
    let (waiting, busy): (Vec<_>, Vec<_>) = joined?.into_iter().partition(|(rank, _)| rank.blocking);
    let goes_on = !busy.is_empty();
    for (rank, out) in busy {
        rank.progress.begin(true);
        // SAFETY: the C caller gave room for one handle, which lasts until the call, or the group, has ended.
        unsafe { out.write(comm::publish(rank.clone())) };
        aside(move || {
            // The communicator has the failure.
            _ = rank.meeting.wait_complete();
            rank.progress.end(|| {});
        })?;
    }
    for (rank, _) in &waiting {
        rank.meeting.wait_complete()?;
    }
    for (rank, out) in waiting {
        // SAFETY: as above.
        unsafe { out.write(comm::publish(rank)) };
    }
    Ok(goes_on)
}

/// All tell their wishes before the first waits for the others.
fn part(splits: Vec<Split>) -> Outcome<bool> {
    let asked: Vec<_> = splits
        .into_iter()
        .map(|split| (split.rank.split(split.wish, split.blocking), split))
        .collect();
    let (waiting, busy): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, split)| split.rank.blocking);
    let goes_on = !busy.is_empty();
    for (wait, split) in busy {
        let Split { rank, out, .. } = split;
        rank.progress.begin(true);
        let place = Room(out);
        aside(move || {
            let part = wait().ok().flatten();
            let meeting = part.as_ref().map(|part| (part.meeting.clone(), part.rank));
            // SAFETY: the C caller gave room for one handle until the end was told, or the communicator was aborted.
            let written = rank.progress.end(|| unsafe { place.write(part) });
            if let (false, Some((meeting, rank))) = (written, meeting) {
                meeting.abort(rank);
            }
        })?;
    }
    let parted: Outcome<Vec<_>> = waiting
        .into_iter()
        .map(|(wait, split)| Ok((wait()?, split.out)))
        .collect();
    for (rank, out) in parted? {
        // SAFETY: the C caller gave room for one handle, which lasts until the call, or the group, has ended.
        unsafe { Room(out).write(rank) };
    }
    Ok(goes_on)
}

/// Where a new handle goes.
struct Room(*mut ncclComm_t);
// SAFETY: the C caller leaves the place to the library, whichever thread of it writes.
unsafe impl Send for Room {}

impl Room {
    /// # Safety
    /// It can be written.
    unsafe fn write(self, rank: Option<Arc<Rank>>) {
        let handle = rank.map_or(std::ptr::null_mut(), comm::publish);
        // SAFETY: the caller's promise.
        unsafe { self.0.write(handle) };
    }
}

/// Work of a communicator that does not block.
pub(crate) fn aside(work: impl FnOnce() + Send + 'static) -> Outcome {
    let spawned = std::thread::Builder::new().name("rccl".to_owned()).spawn(work);
    spawned
        .map(drop)
        .map_err(|error| Failure::system(format!("no thread: {error}")))
}

/// With `device` as the thread's device.
pub(crate) fn on_device<T>(device: c_int, body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let set = HIP.hipSetDevice.expect("built");
    let before = current_device()?;
    // SAFETY: takes a number.
    from_hip("hipSetDevice", unsafe { set(device) })?;
    let result = body();
    // SAFETY: as above.
    from_hip("hipSetDevice", unsafe { set(before) })?;
    result
}

pub(crate) fn current_device() -> Outcome<c_int> {
    let mut device = 0;
    // SAFETY: writes one number to the address given.
    from_hip("hipGetDevice", unsafe {
        (HIP.hipGetDevice.expect("built"))(&mut device)
    })?;
    Ok(device)
}
