//! Capture: calls on streams become a graph instead of work.
//!
//! A capture begins in one stream, its origin. Another joins when it waits for an event that was recorded in the
//! capture, and must lead back to the origin the same way before the capture ends. What cannot be recorded, and calls
//! that wait for a capturing stream, end the capture: it can then only be ended, without a graph.
//! Rules and codes: hipamd/src/hip_stream.cpp and hipamd/src/hip_graph_capture.hpp.

pub(crate) mod calls;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;

use hip_sys::{hipError_t, hipEvent_t, hipStreamCaptureMode as Mode};
use parking_lot::Mutex;

use super::nodes::Graph;
use super::operation::Operation;
use crate::error::Result;
use crate::stream::Stream;
use crate::{event, log};

/// One capture, which may span several streams.
pub(crate) struct Session {
    id: u64,
    graph: Arc<Graph>,
    /// The nodes that were there before; `None` if the graph was made for the capture.
    before: Option<HashSet<usize>>,
    mode: Mode,
    thread: ThreadId,
    broken: AtomicBool,
    /// The streams that joined; the origin is the first.
    streams: Mutex<Vec<Weak<Stream>>>,
}

/// A stream's place in a capture: its next node waits for these.
#[derive(Clone)]
pub(crate) struct Captured {
    session: Arc<Session>,
    last: Vec<usize>,
}

impl Captured {
    /// Ends the capture if it still records; whether it did.
    pub(crate) fn abandon(&self) -> bool {
        let recording = self.session.is_recording();
        if recording {
            self.session.break_off();
        }
        recording
    }
}

static SESSIONS: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// How calls on this thread that are unsafe in a capture are treated.
    static MODE: Cell<Mode> = const { Cell::new(Mode::hipStreamCaptureModeGlobal) };
}

impl Session {
    /// Begins in `stream`, into `graph` or a new one.
    fn begin(stream: &Arc<Stream>, mode: Mode, graph: Option<Arc<Graph>>) -> Arc<Self> {
        let tokens = |graph: &Arc<Graph>| graph.nodes().iter().map(|node| node.token).collect();
        let before = graph.as_ref().map(tokens);
        let session = Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            graph: graph.unwrap_or_else(Graph::publish),
            before,
            mode,
            thread: std::thread::current().id(),
            broken: AtomicBool::new(false),
            streams: Mutex::new(vec![Arc::downgrade(stream)]),
        });
        SESSIONS.lock().push(Arc::downgrade(&session));
        session
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// Whether work is still recorded.
    fn is_recording(&self) -> bool {
        let sessions = SESSIONS.lock();
        let mut living = sessions.iter().filter_map(Weak::upgrade);
        !self.is_broken() && living.any(|session| session.id == self.id)
    }

    fn check(&self) -> Result {
        if self.is_broken() {
            Err(hipError_t::hipErrorStreamCaptureInvalidated)
        } else {
            Ok(())
        }
    }

    /// Takes every stream out of the capture.
    fn end(&self) -> Vec<(Arc<Stream>, Captured)> {
        SESSIONS
            .lock()
            .retain(|session| session.upgrade().is_some_and(|other| other.id != self.id));
        let streams = std::mem::take(&mut *self.streams.lock());
        let living = streams.iter().filter_map(Weak::upgrade);
        living
            .filter_map(|stream| {
                let captured = stream.capture.lock().take()?;
                Some((stream, captured))
            })
            .collect()
    }
}

/// Records an operation if the stream captures; whether it did.
pub(crate) fn record(stream: &Stream, operation: impl FnOnce() -> Operation) -> Result<bool> {
    let mut capture = stream.capture.lock();
    let Some(captured) = &mut *capture else {
        return Ok(false);
    };
    captured.session.check()?;
    let node = captured.session.graph.add(operation(), &captured.last)?;
    captured.last = vec![node.token];
    Ok(true)
}

/// Whether the stream captures.
pub(crate) fn is_active(stream: &Stream) -> bool {
    stream.capture.lock().is_some()
}

/// The stream's place in its capture, `None` if it does not capture.
pub(crate) fn place(stream: &Stream) -> Result<Option<Captured>> {
    let captured = stream.capture.lock().clone();
    if let Some(captured) = &captured {
        captured.session.check()?;
    }
    Ok(captured)
}

/// Refuses a call that a capturing stream cannot record, and ends the capture.
pub(crate) fn refuse(stream: &Stream, call: &str) -> Result {
    let capture = stream.capture.lock();
    let Some(captured) = &*capture else {
        return Ok(());
    };
    log::refused(call, format_args!("the stream captures; the capture ends"));
    captured.session.break_off();
    Err(hipError_t::hipErrorStreamCaptureUnsupported)
}

/// Ends the capture of a stream that is going away.
pub(crate) fn abandon(stream: &Stream) {
    let captured = stream.capture.lock().take();
    if let Some(captured) = captured {
        captured.session.break_off();
        captured.session.end();
    }
}

/// Refuses a call that is unsafe while there are captures, as far as the calling thread's mode says, and ends those.
pub(crate) fn forbid(call: &str) -> Result {
    let mode = MODE.get();
    let here = std::thread::current().id();
    let mut sessions = SESSIONS.lock();
    if sessions.is_empty() || mode == Mode::hipStreamCaptureModeRelaxed {
        return Ok(());
    }
    sessions.retain(|session| session.strong_count() > 0);
    let living = sessions.iter().filter_map(Weak::upgrade);
    let touched: Vec<_> = living
        .filter(|session| match session.mode {
            Mode::hipStreamCaptureModeRelaxed => false,
            Mode::hipStreamCaptureModeThreadLocal => session.thread == here,
            _ => mode == Mode::hipStreamCaptureModeGlobal || session.thread == here,
        })
        .collect();
    if touched.is_empty() {
        return Ok(());
    }
    touched.iter().for_each(|session| session.break_off());
    log::refused(call, format_args!("unsafe during a capture, which ends"));
    Err(hipError_t::hipErrorStreamCaptureUnsupported)
}

/// A wait for an event where a capture is involved; whether it was.
pub(crate) fn join(stream: &Arc<Stream>, event: hipEvent_t) -> Result<bool> {
    let recorded = event::captured(event)?;
    let mut capture = stream.capture.lock();
    match (&mut *capture, recorded) {
        (None, None) => Ok(false),
        // The event was recorded in work that is not part of the graph.
        (Some(captured), None) => {
            // One that was never recorded is none to wait for.
            if event::point(event)?.is_none() {
                return Ok(true);
            }
            captured.session.break_off();
            Err(hipError_t::hipErrorStreamCaptureIsolation)
        }
        (Some(captured), Some(other)) => {
            captured.session.check()?;
            if captured.session.id != other.session.id {
                captured.session.break_off();
                other.session.break_off();
                return Err(hipError_t::hipErrorStreamCaptureMerge);
            }
            let mut seen: HashSet<usize> = captured.last.iter().copied().collect();
            let new = other.last.into_iter().filter(|node| seen.insert(*node));
            captured.last.extend(new);
            Ok(true)
        }
        (slot, Some(other)) => {
            other.session.check()?;
            // A default stream cannot be part of a capture.
            if stream.is_null() {
                other.session.break_off();
                return Err(hipError_t::hipErrorStreamCaptureImplicit);
            }
            let joined = Arc::downgrade(stream);
            other.session.streams.lock().push(joined);
            *slot = Some(other);
            Ok(true)
        }
    }
}
