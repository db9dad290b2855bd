//! Events of several processes: counters in memory that all of them map.
//!
//! Each recording takes a number; when its stream gets there, the number is what is reached. Who waits, waits for the
//! number that was last taken when the wait began (hipamd/src/hip_event_ipc.cpp has signals in shared memory likewise).

use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hip_sys::{hipError_t, hipEvent_t, hipIpcEventHandle_t};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{DISABLE_TIMING, Event, INTERPROCESS, find, publish};
use crate::error::{Result, entry};
use crate::memory::RemoteFile;
use crate::memory::backing::{EVENT, sealed_file};
use crate::stream::poll;

/// One page of a file that the processes share.
pub(crate) struct Counters {
    page: *mut c_void,
    file: OwnedFd,
}

// SAFETY: the page is only accessed atomically.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

#[repr(C)]
struct Page {
    taken: AtomicU64,
    reached: AtomicU64,
}

const BYTES: usize = 4096;

impl Counters {
    pub(super) fn new() -> Result<Self> {
        let file = sealed_file(EVENT, BYTES as u64);
        Self::of(file.map_err(|_| hipError_t::hipErrorOutOfMemory)?)
    }

    fn of(file: OwnedFd) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address the kernel chooses touches no existing memory.
        let page = unsafe {
            mmap(
                std::ptr::null_mut(),
                BYTES,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let page = page.map_err(|_| hipError_t::hipErrorOutOfMemory)?;
        Ok(Self { page, file })
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is a page, aligned, and lives as long as this value; all accesses are atomic.
        unsafe { &*self.page.cast::<Page>() }
    }

    /// A new recording, reached when the answer is dropped.
    pub(super) fn take(self: &Arc<Self>) -> Recording {
        Recording {
            number: self.page().taken.fetch_add(1, Ordering::AcqRel) + 1,
            counters: self.clone(),
        }
    }

    /// The last recording's number, 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.page().taken.load(Ordering::Acquire)
    }

    pub(super) fn is_reached(&self, number: u64) -> bool {
        self.page().reached.load(Ordering::Acquire) >= number
    }

    pub(super) fn wait_for(&self, number: u64) {
        poll(|| self.is_reached(number));
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

const MAGIC: u64 = u64::from_le_bytes(*b"hcl-evt1");
const _: () = assert!(size_of::<Shared>() <= size_of::<hipIpcEventHandle_t>());

pub(crate) unsafe extern "C" fn ipc_get_event_handle(
    out: *mut hipIpcEventHandle_t,
    event: hipEvent_t,
) -> hipError_t {
    entry("hipIpcGetEventHandle", || {
        if out.is_null() || event.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // An event that was not made to be shared has no handle (hipamd/src/hip_event.hpp, `Event::GetHandle`).
        let event = find(event)?;
        let counters = event
            .shared
            .as_ref()
            .ok_or(hipError_t::hipErrorInvalidConfiguration)?;
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

pub(crate) unsafe extern "C" fn ipc_open_event_handle(
    out: *mut hipEvent_t,
    handle: hipIpcEventHandle_t,
) -> hipError_t {
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
