//! Events of several processes: the last recordings, in memory that all of them map.
//!
//! Each recording claims the slot of the next number, and then publishes the number. When its stream gets there, or
//! fails before, the slot tells. A wait is for the recording that was the last one when it began, whatever is recorded
//! later (hipamd/src/hip_event_ipc.cpp has so many signals in shared memory likewise, and a recording that finds its
//! signal in use waits there too).
//!
//! A process may stop between the two steps, so the next recording of any process publishes what it finds claimed.
//! A process that ends leaves its recordings unreached for ever. So each number comes with the process that took it,
//! and a wait fails once that process has ended.

use std::cell::Cell;
use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hip_sys::{hipError_t, hipEvent_t, hipIpcEventHandle_t};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::process::{Peer, Process};
use super::{DISABLE_TIMING, Event, INTERPROCESS, find, publish};
use crate::ending::COMMANDS;
use crate::error::{Result, entry};
use crate::log;
use crate::memory::RemoteFile;
use crate::memory::backing::{EVENT, sealed_file};
use crate::stream::poll;

/// One page of a file that the processes share.
pub(crate) struct Counters {
    page: *mut c_void,
    file: OwnedFd,
    /// This process's place in the page.
    place: u64,
}

// SAFETY: the page is only accessed atomically.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

#[repr(C)]
struct Page {
    /// The last [`RecordingId`].
    recording: AtomicU64,
    /// Each a [`Slot`] of the recording whose number leads there.
    slots: [AtomicU64; SLOTS],
    /// For each slot which of its last [`TURNS`] recordings failed, a bit each: a wait may ask when others have had the
    /// slot.
    failed: [AtomicU64; SLOTS],
    /// The greatest number that failed, for a wait that asks later still.
    last_failed: AtomicU64,
    /// The processes that may record, each for good; 0 for none.
    processes: [AtomicU64; PROCESSES],
}

const BYTES: usize = 4096;
/// How many recordings of an event can be under way.
const SLOTS: usize = 32;
/// After how many turns of a slot a bit of `failed` is another recording's.
const TURNS: u64 = u64::BITS as u64;
const PROCESSES: usize = 446;
const _: () = assert!(size_of::<Page>() == BYTES);

/// A recording's number, counted from 1, and the place of the process that took it. One word, so a reader never sees
/// the number of one and the process of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordingId(u64);

impl RecordingId {
    const PLACE: u64 = 0x1FF;

    fn number(self) -> u64 {
        self.0 >> 9
    }

    fn slot(self) -> usize {
        (self.number() % SLOTS as u64) as usize
    }

    /// Its bit among those of its slot.
    fn bit(self) -> u64 {
        1 << (self.number() / SLOTS as u64 % TURNS)
    }

    fn place(self) -> usize {
        (self.0 & Self::PLACE) as usize
    }

    /// The recording after this one, by the process at `place`.
    fn next(self, place: u64) -> Self {
        Self((self.number() + 1) << 9 | place)
    }
}

/// How far the last recording of a slot is. Its value only grows: with the recording's number, and then its state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay = 0,
    /// Reached or failed.
    Over = 1,
}

impl Slot {
    fn of(recording: RecordingId, state: State) -> Self {
        Self(recording.0 << 1 | state as u64)
    }

    fn recording(self) -> RecordingId {
        RecordingId(self.0 >> 1)
    }

    fn is_under_way(self) -> bool {
        self.recording().number() > 0 && self.0 & 1 == State::UnderWay as u64
    }
}

impl Counters {
    pub(super) fn new() -> Result<Self> {
        let file = sealed_file(EVENT, BYTES as u64);
        Self::of(file.map_err(|_| hipError_t::hipErrorOutOfMemory)?)
    }

    fn of(file: OwnedFd) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel chooses touches no existing memory.
        let page = unsafe { mmap(std::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, &file, 0) };
        let page = page.map_err(|_| hipError_t::hipErrorOutOfMemory)?;
        let mut counters = Self { page, file, place: 0 };
        counters.place = counters.settle_in().ok_or(hipError_t::hipErrorOutOfMemory)?;
        Ok(counters)
    }

    /// Enters this process in the page; `None` if there is no room.
    fn settle_in(&self) -> Option<u64> {
        let own = Process::this().word();
        let place = self.page().processes.iter().position(|entry| {
            let entered = entry.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
            entered.is_ok() || entered == Err(own)
        });
        place.map(|place| place as u64)
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is a page, aligned, and lives as long as this value; all accesses are atomic.
        unsafe { &*self.page.cast::<Page>() }
    }

    /// Waits until the next recording's slot is free.
    ///
    /// # Errors
    /// If the process ends first.
    pub(super) fn wait_for_room(&self) -> Result {
        self.room_before(|| COMMANDS.have_ended()).map(|_| ())
    }

    /// The last recording, and the slot of the next one when it is not under way or when it is claimed already.
    fn room_before(&self, ends: impl Fn() -> bool) -> Result<(RecordingId, Slot)> {
        let last = RecordingId(self.page().recording.load(Ordering::Acquire));
        let next = last.next(self.place);
        let room = Cell::new(None);
        poll(|| {
            let slot = self.slot(next);
            let is_claimed = slot.recording().number() >= next.number();
            if is_claimed || !slot.is_under_way() || self.peer(slot.recording()).has_ended() {
                room.set(Some(slot));
            }
            room.get().is_some() || ends()
        });
        let slot = room.get().ok_or(hipError_t::hipErrorDeinitialized)?;
        Ok((last, slot))
    }

    /// A new recording, failed unless it is [reached](Recording::reach).
    ///
    /// # Errors
    /// As [`wait_for_room`](Self::wait_for_room).
    pub(super) fn take(self: &Arc<Self>) -> Result<Recording> {
        loop {
            let (last, found) = self.room_before(|| COMMANDS.have_ended())?;
            let own = last.next(self.place);
            let is_own = self.claim(found, own);
            self.publish(last, own);
            if is_own {
                return Ok(Recording {
                    id: own,
                    counters: self.clone(),
                });
            }
        }
    }

    /// Whether the slot, where `found` was, is now this recording's.
    fn claim(&self, found: Slot, recording: RecordingId) -> bool {
        if found.recording().number() >= recording.number() {
            return false;
        }
        if found.is_under_way() {
            // Its process has ended.
            self.fail(found.recording());
        }
        let slot = &self.page().slots[recording.slot()];
        let claimed = Slot::of(recording, State::UnderWay);
        slot.compare_exchange(found.0, claimed.0, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Makes the recording that has claimed the slot of `next` the last one, if `last` still is.
    fn publish(&self, last: RecordingId, next: RecordingId) {
        let claimed = self.slot(next).recording();
        if claimed.number() == next.number() {
            let recording = &self.page().recording;
            // Otherwise another has published it.
            let _ = recording.compare_exchange(last.0, claimed.0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    fn fail(&self, recording: RecordingId) {
        self.page().failed[recording.slot()].fetch_or(recording.bit(), Ordering::AcqRel);
        self.page().last_failed.fetch_max(recording.number(), Ordering::AcqRel);
    }

    /// Whether the recording, which is over, failed. A wait that asks so late that the bit is another's is told so of
    /// each recording before the last one that failed.
    fn has_failed(&self, recording: RecordingId) -> bool {
        let has_bit = self.page().failed[recording.slot()].load(Ordering::Acquire) & recording.bit() != 0;
        // The recording that has the bit next claims the slot before it changes the bit.
        let later = self.slot(recording).recording().number() - recording.number();
        match later < TURNS * SLOTS as u64 {
            true => has_bit,
            false => recording.number() <= self.page().last_failed.load(Ordering::Acquire),
        }
    }

    /// The last recording, if there is one.
    pub(super) fn last(&self) -> Option<RecordingId> {
        let recording = RecordingId(self.page().recording.load(Ordering::Acquire));
        (recording.number() > 0).then_some(recording)
    }

    /// Whether the recording is reached, or failed.
    fn is_over(&self, recording: RecordingId) -> bool {
        let slot = self.slot(recording);
        // A later one took the slot when this one was over.
        slot.recording().number() > recording.number() || (slot.recording() == recording && !slot.is_under_way())
    }

    fn slot(&self, recording: RecordingId) -> Slot {
        Slot(self.page().slots[recording.slot()].load(Ordering::Acquire))
    }

    /// The process that took the number.
    fn peer(&self, recording: RecordingId) -> Peer {
        let entry = self.page().processes.get(recording.place());
        Peer::of(Process::from_word(
            entry.map_or(0, |entry| entry.load(Ordering::Acquire)),
        ))
    }

    /// Whether the recording is reached.
    ///
    /// # Errors
    /// If it never will be: its stream failed, or its process has ended.
    pub(super) fn is_done(&self, recording: RecordingId) -> Result<bool> {
        let ended = !self.is_over(recording) && self.peer(recording).has_ended();
        self.outcome(recording, ended)
    }

    /// Waits until the recording is reached.
    ///
    /// # Errors
    /// As [`is_done`](Self::is_done), and if this process ends first.
    pub(super) fn wait_for(&self, recording: RecordingId) -> Result {
        self.wait_before(recording, || COMMANDS.have_ended())
    }

    fn wait_before(&self, recording: RecordingId, ends: impl Fn() -> bool) -> Result {
        let peer = self.peer(recording);
        let ended = Cell::new(false);
        poll(|| {
            ended.set(!self.is_over(recording) && peer.has_ended());
            ended.get() || self.is_over(recording) || ends()
        });
        match self.outcome(recording, ended.get())? {
            true => Ok(()),
            false => Err(hipError_t::hipErrorDeinitialized),
        }
    }

    /// A process may reach its recording just before it ends.
    fn outcome(&self, recording: RecordingId, ended: bool) -> Result<bool> {
        if !self.is_over(recording) {
            if ended {
                let reason = "the process that recorded the event ended before the event was reached";
                log::refused("a shared event", format_args!("{reason}"));
                return Err(hipError_t::hipErrorContextIsDestroyed);
            }
            return Ok(false);
        }
        match self.has_failed(recording) {
            true => Err(hipError_t::hipErrorLaunchFailure),
            false => Ok(true),
        }
    }
}

/// A recording on its way through a stream. One that is dropped before it is reached has failed.
pub(super) struct Recording {
    counters: Arc<Counters>,
    id: RecordingId,
}

impl Recording {
    pub(super) fn id(&self) -> RecordingId {
        self.id
    }

    /// The stream got there.
    pub(super) fn reach(&self) {
        let failed = &self.counters.page().failed[self.id.slot()];
        failed.fetch_and(!self.id.bit(), Ordering::AcqRel);
        self.end();
    }

    fn end(&self) {
        let slot = &self.counters.page().slots[self.id.slot()];
        slot.fetch_max(Slot::of(self.id, State::Over).0, Ordering::AcqRel);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.counters.slot(self.id) == Slot::of(self.id, State::UnderWay) {
            self.counters.fail(self.id);
            self.end();
        }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: our mapping, which nothing uses any more.
        let _ = unsafe { munmap(self.page, BYTES) };
    }
}

/// What an event handle holds.
#[derive(Clone, Copy)]
#[repr(C)]
struct Shared {
    magic: u64,
    file: RemoteFile,
}

const MAGIC: u64 = u64::from_le_bytes(*b"hcl-evt5");
const _: () = assert!(size_of::<Shared>() <= size_of::<hipIpcEventHandle_t>());

pub(crate) unsafe extern "C" fn ipc_get_event_handle(out: *mut hipIpcEventHandle_t, event: hipEvent_t) -> hipError_t {
    entry("hipIpcGetEventHandle", || {
        if out.is_null() || event.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // An event that was not made to be shared has no handle (hipamd/src/hip_event.hpp, `Event::GetHandle`).
        let event = find(event)?;
        let counters = event.shared.as_ref().ok_or(hipError_t::hipErrorInvalidConfiguration)?;
        let shared = Shared {
            magic: MAGIC,
            file: RemoteFile::here(&counters.file.as_fd())?,
        };
        let mut handle = hipIpcEventHandle_t::default();
        // SAFETY: the handle has room for the value, asserted above; the caller's handle is not null and has room.
        unsafe {
            (&raw mut handle).cast::<Shared>().write_unaligned(shared);
            crate::error::store(out, handle)
        }
    })
}

pub(crate) unsafe extern "C" fn ipc_open_event_handle(out: *mut hipEvent_t, handle: hipIpcEventHandle_t) -> hipError_t {
    const CALL: &str = "hipIpcOpenEventHandle";
    entry(CALL, || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: the handle has room for the value, and any bytes are numbers.
        let shared = unsafe { (&raw const handle).cast::<Shared>().read_unaligned() };
        if shared.magic != MAGIC {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        if shared.file.is_here() {
            return Err(hipError_t::hipErrorInvalidContext);
        }
        let file = shared
            .file
            .open(CALL, EVENT, BYTES as u64)
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        let counters = Arc::new(Counters::of(file)?);
        let event = Event::new(DISABLE_TIMING | INTERPROCESS, Some(counters))?;
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { publish(out, event) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Arc<Counters> {
        Arc::new(Counters::new().unwrap())
    }

    fn reach_all(counters: &Arc<Counters>, count: usize) {
        (0..count).for_each(|_| counters.take().unwrap().reach());
    }

    #[test]
    fn a_recording_that_stopped_before_its_number_was_published_keeps_its_slot() {
        let counters = counters();
        let (last, found) = counters.room_before(|| false).unwrap();
        let stopped = last.next(counters.place);
        assert!(counters.claim(found, stopped));

        reach_all(&counters, SLOTS - 1);
        assert_eq!(counters.last().unwrap().number(), SLOTS as u64);
        assert!(!counters.is_over(stopped));
        assert!(counters.room_before(|| true).is_err());
        Recording {
            counters: counters.clone(),
            id: stopped,
        }
        .reach();
        reach_all(&counters, 1);
        assert!(counters.is_done(stopped).unwrap());
    }

    #[test]
    fn a_process_that_ends_takes_no_slot_that_is_under_way() {
        let counters = counters();
        let first = counters.take().unwrap();
        reach_all(&counters, SLOTS - 1);
        let last = counters.last();
        let refused = counters.room_before(|| true);
        assert_eq!(refused.err(), Some(hipError_t::hipErrorDeinitialized));
        assert_eq!(counters.last(), last);
        assert!(!counters.is_done(first.id()).unwrap());
    }

    #[test]
    fn a_wait_that_the_end_of_the_process_cuts_short_fails() {
        let counters = counters();
        let recording = counters.take().unwrap();
        let wait = || counters.wait_before(recording.id(), || true);
        assert_eq!(wait(), Err(hipError_t::hipErrorDeinitialized));
        recording.reach();
        assert_eq!(wait(), Ok(()));
    }

    #[test]
    fn an_outcome_is_told_after_others_had_the_slot() {
        let counters = counters();
        let fail_all = || (0..SLOTS).for_each(|_| drop(counters.take().unwrap()));
        let reach_all = || reach_all(&counters, SLOTS);
        let (failed, reached) = (counters.take().unwrap(), counters.take().unwrap());
        let ids = (failed.id(), reached.id());
        reached.reach();
        drop(failed);
        for turn in 0..63 {
            assert_eq!(counters.is_done(ids.0), Err(hipError_t::hipErrorLaunchFailure));
            assert!(counters.is_done(ids.1).unwrap());
            if turn % 3 == 0 { reach_all() } else { fail_all() }
        }
        // From here on a bit is another's, whose recording failed or not.
        for _ in 0..SLOTS {
            let recording = counters.take().unwrap();
            recording.reach();
            assert!(counters.is_done(recording.id()).unwrap());
        }
        for id in [ids.0, ids.1] {
            assert_eq!(counters.is_done(id), Err(hipError_t::hipErrorLaunchFailure));
        }
    }

    #[test]
    fn a_late_wait_is_over_where_no_later_recording_failed() {
        let counters = counters();
        drop(counters.take().unwrap());
        let reached = counters.take().unwrap();
        reached.reach();
        for _ in 0..3 * TURNS {
            assert!(counters.is_done(reached.id()).unwrap());
            reach_all(&counters, SLOTS);
        }
    }

    #[test]
    fn every_number_is_one_recordings() {
        let counters = counters();
        let numbers = |_| {
            let counters = counters.clone();
            std::thread::spawn(move || {
                let take = |_| {
                    let recording = counters.take().unwrap();
                    recording.reach();
                    recording.id().number()
                };
                (0..500).map(take).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..4).map(numbers).collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=2000));
    }
}
