//! The calls that begin, end and inspect captures.

use std::cell::RefCell;
use std::ffi::c_ulonglong;
use std::sync::Arc;

use hip_sys::{
    hipError_t, hipGraph_t, hipGraphEdgeData, hipGraphNode_t, hipStream_t, hipStreamCaptureMode as Mode,
    hipStreamCaptureStatus as Status,
};

use super::{Captured, MODE, Session};
use crate::error::{Result, entry, store};
use crate::graph::build::tokens;
use crate::graph::nodes::Graph;
use crate::stream::{self, Stream};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

fn begin(stream: hipStream_t, mode: Mode, graph: Option<(Arc<Graph>, Vec<usize>)>) -> Result {
    let stream = stream::find(stream)?;
    if stream.is_null() {
        return Err(hipError_t::hipErrorStreamCaptureUnsupported);
    }
    if mode.0 > Mode::hipStreamCaptureModeRelaxed.0 {
        return Err(INVALID);
    }
    let mut capture = stream.capture.lock();
    if capture.is_some() {
        return Err(hipError_t::hipErrorIllegalState);
    }
    let (graph, last) = graph.unzip();
    let last = last.unwrap_or_default();
    let session = Session::begin(&stream, mode, graph);
    *capture = Some(Captured { session, last });
    Ok(())
}

pub(crate) unsafe extern "C" fn stream_begin_capture(stream: hipStream_t, mode: Mode) -> hipError_t {
    entry("hipStreamBeginCapture", || begin(stream, mode, None))
}

pub(crate) unsafe extern "C" fn stream_begin_capture_spt(stream: hipStream_t, mode: Mode) -> hipError_t {
    entry("hipStreamBeginCapture_spt", || begin(stream::own(stream), mode, None))
}

pub(crate) unsafe extern "C" fn stream_begin_capture_to_graph(
    stream: hipStream_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    _data: *const hipGraphEdgeData,
    count: usize,
    mode: Mode,
) -> hipError_t {
    entry("hipStreamBeginCaptureToGraph", || {
        let graph = Graph::find(graph)?;
        // SAFETY: the C caller promises `count` handles.
        let after = unsafe { tokens(after, count) }?;
        begin(stream, mode, Some((graph, after)))
    })
}

/// Whether everything recorded leads to the origin's last nodes.
fn is_joined(session: &Session, origin: &Captured) -> bool {
    let edges = session.graph.edges();
    let mut reached = origin.last.clone();
    let mut next = 0;
    while let Some(&node) = reached.get(next) {
        next += 1;
        for (before, _) in edges.iter().filter(|edge| edge.1 == node) {
            if !reached.contains(before) {
                reached.push(*before);
            }
        }
    }
    let known = |token| session.before.as_ref().is_some_and(|b| b.contains(token));
    let nodes = session.graph.nodes();
    nodes
        .iter()
        .all(|node| known(&node.token) || reached.contains(&node.token))
}

fn end(stream: hipStream_t, out: *mut hipGraph_t) -> Result {
    let stream = stream::find(stream)?;
    let captured = stream.capture.lock().clone();
    let captured = captured.ok_or(hipError_t::hipErrorIllegalState)?;
    if out.is_null() {
        return Err(INVALID);
    }
    let session = captured.session.clone();
    let origin = session.streams.lock().first().cloned();
    let is_origin = origin
        .and_then(|origin| origin.upgrade())
        .is_some_and(|origin| Arc::ptr_eq(&origin, &stream));
    if !is_origin {
        return Err(hipError_t::hipErrorStreamCaptureUnmatched);
    }
    if session.mode != Mode::hipStreamCaptureModeRelaxed && session.thread != std::thread::current().id() {
        return Err(hipError_t::hipErrorStreamCaptureWrongThread);
    }
    session.end();
    let outcome = if session.is_broken() {
        Err(hipError_t::hipErrorStreamCaptureInvalidated)
    } else if !is_joined(&session, &captured) {
        Err(hipError_t::hipErrorStreamCaptureUnjoined)
    } else {
        Ok(session.graph.handle())
    };
    if outcome.is_err() && session.before.is_none() {
        session.graph.destroy();
    }
    // SAFETY: not null; room for a handle by the C caller's promise.
    unsafe { store(out, outcome.unwrap_or(std::ptr::null_mut())) }?;
    outcome.map(|_| ())
}

pub(crate) unsafe extern "C" fn stream_end_capture(stream: hipStream_t, out: *mut hipGraph_t) -> hipError_t {
    entry("hipStreamEndCapture", || end(stream, out))
}

pub(crate) unsafe extern "C" fn stream_end_capture_spt(stream: hipStream_t, out: *mut hipGraph_t) -> hipError_t {
    entry("hipStreamEndCapture_spt", || end(stream::own(stream), out))
}

/// The default stream waits for blocking streams, so it has no state to tell while one of them captures.
fn not_implicit(stream: &Stream) -> Result {
    let captures = |stream: &std::sync::Arc<Stream>| stream.is_blocking() && super::is_active(stream);
    if stream.is_null() && stream::of(stream.device()).living().iter().any(captures) {
        return Err(hipError_t::hipErrorStreamCaptureImplicit);
    }
    Ok(())
}

fn status(captured: Option<&Captured>) -> Status {
    match captured {
        None => Status::hipStreamCaptureStatusNone,
        Some(captured) if captured.session.is_broken() => Status::hipStreamCaptureStatusInvalidated,
        Some(_) => Status::hipStreamCaptureStatusActive,
    }
}

pub(crate) unsafe extern "C" fn stream_is_capturing(stream: hipStream_t, out: *mut Status) -> hipError_t {
    entry("hipStreamIsCapturing", || {
        let stream = stream::find(stream)?;
        not_implicit(&stream)?;
        let status = status(stream.capture.lock().as_ref());
        // SAFETY: null is refused by `store`; otherwise room for the status by the C caller's promise.
        unsafe { store(out, status) }
    })
}

pub(crate) unsafe extern "C" fn stream_is_capturing_spt(stream: hipStream_t, out: *mut Status) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { stream_is_capturing(stream::own(stream), out) }
}

thread_local! {
    /// The list that the last query of this thread points to.
    static TOLD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(crate) unsafe extern "C" fn stream_get_capture_info_v2(
    stream: hipStream_t,
    out: *mut Status,
    id: *mut c_ulonglong,
    graph: *mut hipGraph_t,
    nodes: *mut *const hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    entry("hipStreamGetCaptureInfo_v2", || {
        if out.is_null() {
            return Err(INVALID);
        }
        let stream = stream::find(stream)?;
        not_implicit(&stream)?;
        let captured = stream.capture.lock().clone();
        // SAFETY: `out` is not null; each other pointer is null and skipped, or has room by the C caller's promise.
        unsafe {
            store(out, status(captured.as_ref()))?;
            let Some(captured) = captured else {
                return Ok(());
            };
            if !id.is_null() {
                store(id, captured.session.id)?;
            }
            if !graph.is_null() {
                store(graph, captured.session.graph.handle())?;
            }
            if !count.is_null() {
                store(count, captured.last.len())?;
            }
            if !nodes.is_null() {
                let list = TOLD.with_borrow_mut(|told| {
                    *told = captured.last;
                    told.as_ptr()
                });
                store(nodes, list.cast())?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn stream_get_capture_info_v2_spt(
    stream: hipStream_t,
    out: *mut Status,
    id: *mut c_ulonglong,
    graph: *mut hipGraph_t,
    nodes: *mut *const hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { stream_get_capture_info_v2(stream::own(stream), out, id, graph, nodes, count) }
}

pub(crate) unsafe extern "C" fn stream_get_capture_info(
    stream: hipStream_t,
    out: *mut Status,
    id: *mut c_ulonglong,
) -> hipError_t {
    let null = std::ptr::null_mut();
    // SAFETY: the same contract; what is not asked for is null.
    unsafe { stream_get_capture_info_v2(stream, out, id, null, std::ptr::null_mut(), std::ptr::null_mut()) }
}

pub(crate) unsafe extern "C" fn stream_get_capture_info_spt(
    stream: hipStream_t,
    out: *mut Status,
    id: *mut c_ulonglong,
) -> hipError_t {
    // SAFETY: the same contract.
    unsafe { stream_get_capture_info(stream::own(stream), out, id) }
}

pub(crate) unsafe extern "C" fn stream_update_capture_dependencies(
    stream: hipStream_t,
    list: *mut hipGraphNode_t,
    count: usize,
    flags: std::ffi::c_uint,
) -> hipError_t {
    entry("hipStreamUpdateCaptureDependencies", || {
        let stream = stream::find(stream)?;
        // Add to the nodes that the next one waits for, or put these in their place.
        if flags > 1 {
            return Err(INVALID);
        }
        // SAFETY: the C caller promises `count` handles.
        let mut new = unsafe { tokens(list, count) }?;
        let mut capture = stream.capture.lock();
        let captured = capture.as_mut().ok_or(hipError_t::hipErrorIllegalState)?;
        captured.session.check()?;
        let known = captured.session.graph.nodes();
        if new.iter().any(|token| known.iter().all(|node| node.token != *token)) {
            return Err(INVALID);
        }
        if flags == 0 {
            new.extend(&captured.last);
        }
        new.sort_unstable();
        new.dedup();
        captured.last = new;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn thread_exchange_stream_capture_mode(mode: *mut Mode) -> hipError_t {
    entry("hipThreadExchangeStreamCaptureMode", || {
        if mode.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; a mode, and room for one, by the C caller's promise.
        let new = unsafe { mode.read_unaligned() };
        if new.0 > Mode::hipStreamCaptureModeRelaxed.0 {
            return Err(INVALID);
        }
        // SAFETY: as above.
        unsafe { store(mode, MODE.replace(new)) }
    })
}
