//! Events: a point in a stream, with the time it was reached.

mod process;
mod shared;
mod wait;

use std::ffi::c_uint;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use hip_sys::{hipError_t, hipEvent_t, hipStream_t};
use parking_lot::Mutex;
use shared::{Counters, RecordingId};
pub(crate) use shared::{ipc_get_event_handle, ipc_open_event_handle};
pub(crate) use wait::*;

use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::graph::capture::{self, Captured};
use crate::handles::Handles;
use crate::stream::{self, Mark, Stream};

static EVENTS: Handles<Event> = Handles::new();

const DISABLE_TIMING: c_uint = 0x2;
const INTERPROCESS: c_uint = 0x4;
const NO_RELEASE: c_uint = 0x2000_0000;
const RELEASE_TO_DEVICE: c_uint = 0x4000_0000;
const RELEASE_TO_SYSTEM: c_uint = 0x8000_0000;
/// ROCm's own: how far a recording makes writes visible.
const SCOPES: c_uint = NO_RELEASE | RELEASE_TO_DEVICE | RELEASE_TO_SYSTEM;
/// Blocking sync, disable timing, interprocess, and the scopes.
const KNOWN_FLAGS: c_uint = 0x1 | DISABLE_TIMING | INTERPROCESS | SCOPES;

struct Event {
    device: &'static Device,
    timed: bool,
    recorded: Mutex<Option<Recorded>>,
    /// What other processes see of it.
    shared: Option<Arc<Counters>>,
    /// Where in a capture it was last recorded, if it was there and not in a stream that works.
    captured: Mutex<Option<Captured>>,
}

impl Event {
    fn new(flags: c_uint, shared: Option<Arc<Counters>>) -> Result<Self> {
        Ok(Self {
            device: device::current()?,
            timed: flags & DISABLE_TIMING == 0,
            recorded: Mutex::new(None),
            shared,
            captured: Mutex::new(None),
        })
    }

    /// What has to be done before everything that was recorded is.
    fn point(&self) -> Option<Point> {
        let recorded = self.recorded.lock();
        let last = self
            .shared
            .as_ref()
            .and_then(|counters| Some((counters, counters.last()?)));
        match (last, recorded.as_ref()) {
            // Another process recorded it since.
            (Some((counters, recording)), own) if own.is_none_or(|own| own.shared != Some(recording)) => {
                Some(Point::Shared {
                    counters: counters.clone(),
                    recording,
                })
            }
            (_, own) => own.map(|own| Point::Here(own.mark.clone())),
        }
    }
}

/// Where an event was last recorded.
pub(crate) enum Point {
    /// In a stream of this process.
    Here(Mark),
    /// By whichever process.
    Shared {
        counters: Arc<Counters>,
        recording: RecordingId,
    },
}

impl Point {
    /// Makes `stream` wait for it, and for `after`.
    pub(crate) fn hold(self, call: &'static str, stream: &Arc<Stream>, mut after: Vec<Mark>) -> Result<Mark> {
        match self {
            Self::Here(mark) => {
                after.push(mark);
                stream.submit(call, after, Box::new(|| Ok(())))
            }
            shared => stream.submit_waiting(call, after, Box::new(move || shared.wait())),
        }
    }

    /// # Errors
    /// The work before it failed. If another process recorded it: that process ended before it got there.
    fn is_done(&self) -> Result<bool> {
        match self {
            Self::Here(mark) if mark.is_done() => mark.outcome().map(|()| true),
            Self::Here(_) => Ok(false),
            Self::Shared { counters, recording } => counters.is_done(*recording),
        }
    }

    /// # Errors
    /// As [`is_done`](Self::is_done).
    fn wait(&self) -> Result {
        match self {
            Self::Here(mark) => {
                mark.wait();
                mark.outcome()
            }
            Self::Shared { counters, recording } => counters.wait_for(*recording),
        }
    }
}

#[derive(Clone)]
struct Recorded {
    mark: Mark,
    /// As other processes know it.
    shared: Option<RecordingId>,
    reached: Arc<OnceLock<Instant>>,
}

fn find(event: hipEvent_t) -> Result<Arc<Event>> {
    EVENTS.get(event as usize).ok_or(hipError_t::hipErrorInvalidHandle)
}

/// Where the event was last recorded; `None` if never.
pub(crate) fn point(event: hipEvent_t) -> Result<Option<Point>> {
    Ok(find(event)?.point())
}

/// # Safety
/// `out` is null or valid for writing a handle.
unsafe fn publish(out: *mut hipEvent_t, event: Event) -> Result {
    if out.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: not null, so valid by this function's contract.
    unsafe { store(out, EVENTS.insert(Arc::new(event)) as hipEvent_t) }
}

fn create(out: *mut hipEvent_t, flags: c_uint) -> Result {
    let interprocess = flags & INTERPROCESS != 0;
    // Shared events have no times, and an event has one scope (hipamd/src/hip_event.cpp, `ihipEventCreateWithFlags`).
    if out.is_null()
        || flags & !KNOWN_FLAGS != 0
        || (flags & SCOPES).count_ones() > 1
        || (interprocess && flags & DISABLE_TIMING == 0)
    {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    let counters = if interprocess {
        Some(Arc::new(Counters::new()?))
    } else {
        None
    };
    // SAFETY: `out` is not null; the C caller promises room for a handle.
    unsafe { publish(out, Event::new(flags, counters)?) }
}

pub(crate) unsafe extern "C" fn event_create(out: *mut hipEvent_t) -> hipError_t {
    entry("hipEventCreate", || create(out, 0))
}

pub(crate) unsafe extern "C" fn event_create_with_flags(out: *mut hipEvent_t, flags: c_uint) -> hipError_t {
    entry("hipEventCreateWithFlags", || create(out, flags))
}

pub(crate) unsafe extern "C" fn event_destroy(event: hipEvent_t) -> hipError_t {
    // A recording still under way keeps what it needs by itself.
    entry("hipEventDestroy", || {
        if event.is_null() {
            return Err(hipError_t::hipErrorInvalidHandle);
        }
        let removed = EVENTS.remove(event as usize);
        removed.map(|_| ()).ok_or(hipError_t::hipErrorContextIsDestroyed)
    })
}

/// The capture that the event was last recorded in, if any.
pub(crate) fn captured(event: hipEvent_t) -> Result<Option<Captured>> {
    Ok(find(event)?.captured.lock().clone())
}

fn record(call: &'static str, event: hipEvent_t, stream: hipStream_t) -> Result {
    let stream = stream::find(stream)?;
    let found = find(event)?;
    // An event belongs to the device it was created on (hipamd/src/hip_event.cpp, `Event::addMarker`).
    if !std::ptr::eq(found.device, stream.device()) {
        return Err(hipError_t::hipErrorInvalidHandle);
    }
    // In a capture, an event marks a place in the graph.
    if let Some(place) = capture::place(&stream)? {
        *found.captured.lock() = Some(place);
        return Ok(());
    }
    record_in(call, event, &stream, Vec::new()).map(|_| ())
}

/// Records the event in a stream that works, behind `after` too.
pub(crate) fn record_in(call: &'static str, event: hipEvent_t, stream: &Arc<Stream>, after: Vec<Mark>) -> Result<Mark> {
    let event = find(event)?;
    *event.captured.lock() = None;
    let reached = Arc::new(OnceLock::new());
    let stamp = reached.clone();
    if let Some(counters) = &event.shared {
        counters.wait_for_room()?;
    }
    // Held over the submission, so two threads recording at once leave the later recording behind.
    let mut recorded = event.recorded.lock();
    let shared = event.shared.as_ref().map(Counters::take).transpose()?;
    let id = shared.as_ref().map(|recording| recording.id());
    let (behind, others) = (stream.clone(), after.clone());
    let mark = stream.submit(
        call,
        after,
        Box::new(move || {
            let _ = stamp.set(Instant::now());
            let succeeded = behind.outcome().is_ok() && others.iter().all(|mark| mark.outcome().is_ok());
            if let Some(shared) = shared.filter(|_| succeeded) {
                shared.reach();
            }
            Ok(())
        }),
    )?;
    *recorded = Some(Recorded {
        mark: mark.clone(),
        shared: id,
        reached,
    });
    Ok(mark)
}

pub(crate) unsafe extern "C" fn event_record(event: hipEvent_t, stream: hipStream_t) -> hipError_t {
    entry("hipEventRecord", || record("hipEventRecord", event, stream))
}

pub(crate) unsafe extern "C" fn event_record_spt(event: hipEvent_t, stream: hipStream_t) -> hipError_t {
    entry("hipEventRecord_spt", || {
        record("hipEventRecord_spt", event, stream::own(stream))
    })
}

pub(crate) unsafe extern "C" fn event_record_with_flags(
    event: hipEvent_t,
    stream: hipStream_t,
    flags: c_uint,
) -> hipError_t {
    entry("hipEventRecordWithFlags", || {
        // Default, and for captures external.
        if flags > 1 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        record("hipEventRecordWithFlags", event, stream)
    })
}

/// The host cannot ask for an event of a capture that still runs: the attempt ends the capture, in every mode
/// (hipamd/src/hip_event.cpp, `ihipEventQuery`).
fn not_captured(event: hipEvent_t) -> Result {
    match captured(event)? {
        Some(place) if place.abandon() => Err(hipError_t::hipErrorCapturedEvent),
        _ => Ok(()),
    }
}

pub(crate) unsafe extern "C" fn event_query(event: hipEvent_t) -> hipError_t {
    entry("hipEventQuery", || {
        not_captured(event)?;
        match point(event)? {
            Some(point) if !point.is_done()? => Err(hipError_t::hipErrorNotReady),
            _ => Ok(()),
        }
    })
}

pub(crate) unsafe extern "C" fn event_synchronize(event: hipEvent_t) -> hipError_t {
    entry("hipEventSynchronize", || {
        not_captured(event)?;
        match point(event)? {
            Some(point) => point.wait(),
            None => Ok(()),
        }
    })
}

pub(crate) unsafe extern "C" fn event_elapsed_time(out: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t {
    entry("hipEventElapsedTime", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let (start, stop) = (find(start)?, find(stop)?);
        if !start.timed || !stop.timed || !std::ptr::eq(start.device, stop.device) {
            return Err(hipError_t::hipErrorInvalidHandle);
        }
        // One after the other: both may be the same event.
        let start = start.recorded.lock().clone();
        let stop = stop.recorded.lock().clone();
        let (Some(start), Some(stop)) = (start, stop) else {
            return Err(hipError_t::hipErrorInvalidHandle);
        };
        if !start.mark.is_done() || !stop.mark.is_done() {
            return Err(hipError_t::hipErrorNotReady);
        }
        // A recording that an injected fault skipped is done without having been reached.
        let (Some(from), Some(to)) = (start.reached.get(), stop.reached.get()) else {
            return Err(hipError_t::hipErrorInvalidHandle);
        };
        let milliseconds = if to >= from {
            to.duration_since(*from).as_secs_f64()
        } else {
            -from.duration_since(*to).as_secs_f64()
        } * 1e3;
        // SAFETY: `out` is not null; the C caller promises room for a float.
        unsafe { store(out, milliseconds as f32) }
    })
}
