//! Streams: each is a thread that works off a queue in order.
//!
//! Waiting across streams (events, the null stream's rules) is a list of [`Mark`]s a command must see done before it
//! runs. A mark only ever names a command that was queued earlier, so waits cannot form a circle.

mod calls;
mod hardware;
mod host;
mod lanes;
mod of_device;
mod per_thread;
mod value;

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) use calls::*;
use hardware::Queue;
use hip_sys::{hipError_t, hipStream_t};
pub(crate) use host::*;
pub(crate) use lanes::Lanes;
pub(crate) use of_device::of;
use parking_lot::{Condvar, Mutex};
pub(crate) use per_thread::own;
pub(crate) use value::*;

use crate::device::{self, Device};
use crate::ending::COMMANDS;
use crate::error::Result;
use crate::faults::{self, Injected};
use crate::graph::capture::{self, Captured};
use crate::handles::{self, Handles};
use crate::log;
use crate::memory::sealed;
use crate::work::Work;

static STREAMS: Handles<Stream> = Handles::new();

/// `hipStreamLegacy`: the null stream by another name.
const LEGACY: usize = 1;
/// `hipStreamPerThread`: a blocking stream of the calling thread's own.
const PER_THREAD: usize = 2;

const FLAG_DEFAULT: c_uint = 0;
const FLAG_NON_BLOCKING: c_uint = 1;
/// The numerically largest priority is the lowest.
const PRIORITY_LOW: c_int = 1;
const PRIORITY_HIGH: c_int = -1;

/// Bytes of the stack of a stream's thread. OpenCL's CPU runtimes run work-items on the thread that enqueues, with their
/// private memory, and reckon with the stack of a program's first thread.
const STACK: usize = 8 << 20;

/// One in-order queue and its thread.
pub(crate) struct Stream {
    device: &'static Device,
    kind: Kind,
    flags: c_uint,
    priority: c_int,
    token: usize,
    state: Mutex<State>,
    progress: Condvar,
    /// The hardware queue that it shares, where there are fewer than streams.
    queue: Option<Arc<Queue>>,
    /// What the stream records instead of doing it.
    pub(crate) capture: Mutex<Option<Captured>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The legacy default stream of a device.
    Null,
    /// Ordered against the null stream.
    Blocking,
    NonBlocking,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Command>,
    submitted: u64,
    completed: u64,
    closed: bool,
    has_thread: bool,
    failure: Option<Failure>,
}

/// The first command that failed. It stays, as on a GPU: ROCm keeps one error for all devices of the process and
/// answers every later call with it (rocclr/device/device.hpp, `gpu_error_`; hipamd/src/hip_internal.hpp,
/// `HIP_INIT_API`). Here it is the stream's, and that of every stream which waits for it by an event: what does not
/// depend on the failed work goes on.
#[derive(Clone, Copy)]
struct Failure {
    code: hipError_t,
    sequence: u64,
}

struct Command {
    call: &'static str,
    after: Vec<Mark>,
    /// What the rules of the default stream and a shared hardware queue add. A failure there is not passed on: every
    /// stream of the program would have it.
    implicit: Vec<Mark>,
    work: Work,
    /// Whether the work may wait for something outside the stream: then no call may wait for it to end.
    waits: bool,
}

/// "Everything queued to this stream up to here".
#[derive(Clone)]
pub(crate) struct Mark {
    stream: Arc<Stream>,
    sequence: u64,
}

impl Mark {
    pub(crate) fn is_done(&self) -> bool {
        self.stream.state.lock().completed >= self.sequence
    }

    /// Whether what is done up to here succeeded.
    pub(crate) fn outcome(&self) -> Result {
        match self.stream.state.lock().failure {
            Some(failure) if failure.sequence <= self.sequence => Err(failure.code),
            _ => Ok(()),
        }
    }

    pub(crate) fn wait(&self) {
        let mut state = self.stream.state.lock();
        while state.completed < self.sequence {
            self.stream.progress.wait(&mut state);
        }
    }
}

impl Stream {
    fn new(device: &'static Device, kind: Kind, flags: c_uint, priority: c_int) -> Arc<Self> {
        let stream = Arc::new(Self {
            device,
            kind,
            flags,
            priority,
            token: handles::fresh(),
            state: Mutex::default(),
            progress: Condvar::new(),
            queue: Queue::acquire(device.ordinal, priority),
            capture: Mutex::new(None),
        });
        of(device).add(&stream);
        stream
    }

    /// The default stream of `device`; each device makes it when first asked.
    pub(crate) fn null(device: &'static Device) -> Arc<Self> {
        of(device).null(|| Self::new(device, Kind::Null, FLAG_DEFAULT, 0))
    }

    /// Whether it is a device's default stream, which can never capture.
    pub(crate) fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Whether its work is ordered against the default stream's.
    pub(crate) fn is_blocking(&self) -> bool {
        self.kind == Kind::Blocking
    }

    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }

    /// A mark after everything queued so far, or `None` if all of it is done.
    pub(crate) fn pending(self: &Arc<Self>) -> Option<Mark> {
        let state = self.state.lock();
        (state.completed < state.submitted).then(|| Mark {
            stream: self.clone(),
            sequence: state.submitted,
        })
    }

    /// What its first failed command answered.
    pub(crate) fn outcome(&self) -> Result {
        match self.state.lock().failure {
            Some(failure) => Err(failure.code),
            None => Ok(()),
        }
    }

    /// As [`outcome`](Self::outcome), for a stream that is used again for something else.
    fn take_failure(&self) -> Result {
        match self.state.lock().failure.take() {
            Some(failure) => Err(failure.code),
            None => Ok(()),
        }
    }

    /// The waits that the legacy null stream's rules add to a command of this stream.
    fn implicit_waits(&self) -> Vec<Mark> {
        match self.kind {
            Kind::Null => of(self.device)
                .living()
                .iter()
                .filter(|s| s.kind == Kind::Blocking)
                .filter_map(Self::pending)
                .collect(),
            Kind::Blocking => of(self.device)
                .existing_null()
                .iter()
                .filter_map(Self::pending)
                .collect(),
            Kind::NonBlocking => Vec::new(),
        }
    }

    /// Queues `work` behind everything in this stream and behind `after`; the mark says when it is done.
    pub(crate) fn submit(self: &Arc<Self>, call: &'static str, after: Vec<Mark>, work: Work) -> Result<Mark> {
        self.push(call, after, work, false)
    }

    /// As [`submit`](Self::submit), for work that waits for other threads and touches no device memory but words.
    pub(crate) fn submit_waiting(self: &Arc<Self>, call: &'static str, after: Vec<Mark>, work: Work) -> Result<Mark> {
        self.push(call, after, work, true)
    }

    fn push(self: &Arc<Self>, call: &'static str, after: Vec<Mark>, work: Work, waits: bool) -> Result<Mark> {
        // What cannot be recorded cannot be done either while the stream captures.
        capture::refuse(self, call)?;
        let mut implicit = self.implicit_waits();
        let turn = self.queue.as_ref().map(|queue| queue.turn());
        implicit.extend(turn.as_ref().and_then(|turn| turn.behind(self)));
        let mut state = self.state.lock();
        // Destroyed since it was looked up; its thread may have gone.
        if state.closed {
            return Err(hipError_t::hipErrorContextIsDestroyed);
        }
        if !state.has_thread {
            let worker = self.clone();
            std::thread::Builder::new()
                .name("hip-host stream".to_owned())
                .stack_size(STACK)
                .spawn(move || worker.run())
                .map_err(|_| hipError_t::hipErrorOutOfMemory)?;
            state.has_thread = true;
        }
        state.queue.push_back(Command {
            call,
            after,
            implicit,
            work,
            waits,
        });
        state.submitted += 1;
        let mark = Mark {
            stream: self.clone(),
            sequence: state.submitted,
        };
        drop(state);
        self.progress.notify_all();
        if let Some(turn) = turn {
            turn.end(&mark);
        }
        Ok(mark)
    }

    fn run(self: Arc<Self>) {
        loop {
            let command = {
                let mut state = self.state.lock();
                loop {
                    if let Some(command) = state.queue.pop_front() {
                        break command;
                    }
                    if state.closed {
                        return;
                    }
                    self.progress.wait(&mut state);
                }
            };
            let result = command.run();
            let mut state = self.state.lock();
            state.completed += 1;
            if let Err(code) = result {
                let sequence = state.completed;
                state.failure.get_or_insert(Failure { code, sequence });
            }
            drop(state);
            self.progress.notify_all();
        }
    }

    /// Waits for everything queued so far and reports what went wrong.
    pub(crate) fn synchronize(self: &Arc<Self>) -> Result {
        if let Some(mark) = self.pending() {
            mark.wait();
        }
        self.outcome()
    }

    /// The host-side wait that synchronising the null stream means: for it and for every blocking stream.
    fn synchronize_null(self: &Arc<Self>) -> Result {
        let waits: Vec<Mark> = self.implicit_waits();
        let mut result = self.synchronize();
        for mark in waits {
            mark.wait();
            result = result.and(mark.outcome());
        }
        result
    }

    fn is_destroyed(&self) -> bool {
        self.state.lock().closed
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.progress.notify_all();
    }
}

impl Command {
    fn run(self) -> Result {
        let Self {
            call,
            after,
            implicit,
            work,
            waits,
        } = self;
        let mut before = Ok(());
        for mark in &after {
            mark.wait();
            before = before.and(mark.outcome());
        }
        implicit.iter().for_each(Mark::wait);
        drop((after, implicit));
        if let Some(delay) = faults::delay() {
            std::thread::sleep(delay);
        }
        match faults::injected_in_stream(call) {
            Some(Injected::Unknown) => return Err(hipError_t::hipErrorLaunchFailure),
            Some(Injected::Code(code)) => return Err(hipError_t(code)),
            None => {}
        }
        let _open = if waits { None } else { sealed::open() };
        // Also behind failed work: a host function or a written word may be what another thread waits for.
        let run = || match waits {
            true => COMMANDS.run_unawaited(work),
            false => COMMANDS.run(work),
        };
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|reason| {
            if COMMANDS.have_ended() {
                return Err(hipError_t::hipErrorDeinitialized);
            }
            // Library code ends a command it must refuse by unwinding with the reason.
            match reason.downcast_ref::<String>() {
                Some(reason) => log::refused(call, format_args!("in the stream: {reason}")),
                None => log::warn(&format!(
                    "{call}: failed in the stream, which returns hipErrorLaunchFailure from now on"
                )),
            }
            Err(hipError_t::hipErrorLaunchFailure)
        });
        before.and(result)
    }
}

/// The stream a handle names.
///
/// An unknown one answers `hipErrorContextIsDestroyed`, as HIP 5 and 6 do (hipamd/src/hip_stream.cpp, `isValid`); HIP 7
/// dropped the check and may crash.
pub(crate) fn find(stream: hipStream_t) -> Result<Arc<Stream>> {
    match stream as usize {
        0 | LEGACY => Ok(Stream::null(device::current()?)),
        PER_THREAD => per_thread::of_this_thread(device::current()?),
        token => STREAMS.get(token).ok_or(hipError_t::hipErrorContextIsDestroyed),
    }
}

pub(crate) fn is_null_handle(stream: hipStream_t) -> bool {
    matches!(stream as usize, 0 | LEGACY)
}

/// Runs `work` in stream order on `stream` (null = the current device's default stream) and returns at once.
///
/// `call` names the API function for logs. A `work` that panics becomes the stream's asynchronous error.
pub(crate) fn enqueue(stream: hipStream_t, call: &'static str, work: Box<dyn FnOnce() + Send>) -> hipError_t {
    let queued = find(stream).and_then(|stream| {
        let work: Work = Box::new(move || {
            work();
            Ok(())
        });
        stream.submit(call, Vec::new(), work).map(|_| ())
    });
    queued.err().unwrap_or(hipError_t::hipSuccess)
}

/// Whether `stream` names a stream that exists (null and `hipStreamPerThread` included).
pub fn is_valid(stream: hipStream_t) -> bool {
    find(stream).is_ok()
}

/// Waits for every stream of `device`, the destroyed ones that still work included.
pub(crate) fn synchronize_device(device: &'static Device) -> Result {
    let mut result = Ok(());
    for stream in of(device).living() {
        let outcome = match stream.pending() {
            // Kept by an event, or about to go.
            None if stream.is_destroyed() => Ok(()),
            _ => stream.synchronize(),
        };
        result = result.and(outcome);
    }
    result
}

/// As [`synchronize_device`], leaving errors where they are: for calls such as `hipFree` that wait but do not report.
pub(crate) fn drain_device(device: &'static Device) {
    for mark in of(device).living().iter().filter_map(Stream::pending) {
        mark.wait();
    }
}

/// Destroys the program's streams of `device` after their work is done. Its default streams stay, without their
/// failures.
pub(crate) fn destroy_all(device: &'static Device) {
    drain_device(device);
    for stream in of(device).living() {
        // Also that of a destroyed stream which something keeps.
        let _ = stream.take_failure();
        if STREAMS.remove(stream.token).is_some() {
            stream.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::calls::create;

    #[test]
    fn a_stream_destroyed_after_it_was_found_takes_no_more_work() {
        let mut handle = std::ptr::null_mut();
        assert_eq!(create(&mut handle, FLAG_NON_BLOCKING, 0), Ok(()));
        let stream = find(handle).unwrap();
        let done = stream.submit("test", Vec::new(), Box::new(|| Ok(()))).unwrap();
        // SAFETY: any value may be given as a handle.
        let destroyed = unsafe { stream_destroy(handle) };
        assert_eq!(destroyed, hipError_t::hipSuccess);
        done.wait();
        let late = stream.submit("test", Vec::new(), Box::new(|| Ok(())));
        assert_eq!(late.err(), Some(hipError_t::hipErrorContextIsDestroyed));
    }
}
