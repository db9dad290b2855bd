//! Events of several processes: counters in memory that all of them map.
//!
//! Each recording takes a number; when its stream gets there, the number is what is reached. Who waits, waits for the
//! number that was last taken when the wait began (hipamd/src/hip_event_ipc.cpp has signals in shared memory likewise).
//!
//! A process that ends leaves its recordings unreached for ever. So each number comes with the process that took it,
//! and a wait fails once that process has ended.

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
    /// A [`RecordingId`].
    recording: AtomicU64,
    reached: AtomicU64,
    /// The processes that may record, each for good; 0 for none.
    processes: [AtomicU64; PROCESSES],
}

const BYTES: usize = 4096;
const PROCESSES: usize = 510;
const _: () = assert!(size_of::<Page>() == BYTES);

/// A recording's number, counted from 1, and the place of the process that took it. One word, so a reader never sees
/// the number of one and the process of another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordingId(u64);

impl RecordingId {
    const PLACE: u64 = 0x1FF;

    fn number(self) -> u64 {
        self.0 >> 9
    }

    fn place(self) -> usize {
        (self.0 & Self::PLACE) as usize
    }

    /// The recording after this one, by the process at `place`.
    fn next(self, place: u64) -> Self {
        Self((self.number() + 1) << 9 | place)
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

    /// A new recording, reached when the answer is dropped.
    pub(super) fn take(self: &Arc<Self>) -> Recording {
        let recording = &self.page().recording;
        let mut last = recording.load(Ordering::Acquire);
        let own = loop {
            let own = RecordingId(last).next(self.place);
            match recording.compare_exchange(last, own.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break own,
                Err(other) => last = other,
            }
        };
        Recording {
            number: own.number(),
            counters: self.clone(),
        }
    }

    /// The last recording, if there is one.
    pub(super) fn last(&self) -> Option<RecordingId> {
        let recording = RecordingId(self.page().recording.load(Ordering::Acquire));
        (recording.number() > 0).then_some(recording)
    }

    fn is_reached(&self, recording: RecordingId) -> bool {
        self.page().reached.load(Ordering::Acquire) >= recording.number()
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
    /// If it never will be, because its process has ended.
    pub(super) fn is_done(&self, recording: RecordingId) -> Result<bool> {
        let ended = !self.is_reached(recording) && self.peer(recording).has_ended();
        self.outcome(recording, ended)
    }

    /// Waits until the recording is reached.
    ///
    /// # Errors
    /// As [`is_done`](Self::is_done).
    pub(super) fn wait_for(&self, recording: RecordingId) -> Result {
        let peer = self.peer(recording);
        let ended = std::cell::Cell::new(false);
        poll(|| {
            ended.set(!self.is_reached(recording) && peer.has_ended());
            ended.get() || self.is_reached(recording) || COMMANDS.have_ended()
        });
        self.outcome(recording, ended.get()).map(|_| ())
    }

    /// A process may reach its recording just before it ends.
    fn outcome(&self, recording: RecordingId, ended: bool) -> Result<bool> {
        match self.is_reached(recording) {
            false if ended => {
                let reason = "the process that recorded the event ended before the event was reached";
                log::refused("a shared event", format_args!("{reason}"));
                Err(hipError_t::hipErrorContextIsDestroyed)
            }
            is_reached => Ok(is_reached),
        }
    }
}

/// A recording on its way through a stream. A stream that fails before it gets there still ends the wait of others.
pub(super) struct Recording {
    counters: Arc<Counters>,
    number: u64,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let page = self.counters.page();
        page.reached.fetch_max(self.number, Ordering::AcqRel);
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

const MAGIC: u64 = u64::from_le_bytes(*b"hcl-evt2");
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
