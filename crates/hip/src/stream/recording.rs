//! What this thread records of a stream's work instead of letting it run.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use hip_sys::{hipStream_t, hipStreamCaptureStatus};

use super::Stream;
use crate::call::call;
use crate::{Error, Result};

/// Makes sure that a wait for a stream ends.
type BeforeWait = Arc<dyn Fn(&Stream) + Send + Sync>;

/// What a graph uses but does not own.
#[derive(Clone)]
pub(crate) struct Used {
    kept: Arc<dyn Any + Send + Sync>,
    /// Of a stream on which the graph runs.
    before_wait: Option<BeforeWait>,
}

impl Used {
    pub(crate) fn before_wait(&self, stream: &Stream) {
        if let Some(before) = &self.before_wait {
            before(stream);
        }
    }
}

/// What a thread is recording. It lives on the thread's stack, in [`Stream::capture_told`].
pub(crate) struct Recording {
    /// [`Stream::address`] of the stream whose work is recorded.
    stream: *mut (),
    /// The HIP stream that records it.
    recorder: hipStream_t,
    /// The enclosing recording of this thread.
    outer: *const Recording,
    /// The graph keeps it: HIP looks at the code of kernels not only when it runs them, but also when it makes the
    /// graph ready (hipamd/src/hip_graph_internal.cpp, `GraphExec::CaptureAQLPackets`).
    used: RefCell<Vec<Used>>,
}

thread_local! {
    /// This thread's innermost recording, or null. It needs no destructor, so the check is almost free.
    static INNERMOST: Cell<*const Recording> = const { Cell::new(ptr::null()) };
}

impl Recording {
    /// A recording of this stream's work by the HIP stream `recorder`, not begun yet.
    pub(crate) fn new(stream: &Stream, recorder: hipStream_t) -> Self {
        Self {
            stream: stream.address(),
            recorder,
            outer: ptr::null(),
            used: RefCell::default(),
        }
    }

    /// Records what this thread queues on the stream inside `work`.
    pub(crate) fn during<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.outer = INNERMOST.get();
        let running = Running { recording: self };
        INNERMOST.set(&raw const *running.recording);
        work()
    }

    /// What the recorded work uses.
    pub(crate) fn take_used(&self) -> Vec<Used> {
        self.used.take()
    }
}

/// A recording that is in the thread's list, and leaves it on drop, also on a panic.
struct Running<'a> {
    recording: &'a Recording,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // From here on the thread's work runs again.
        INNERMOST.set(self.recording.outer);
    }
}

impl Stream {
    /// Whether work that this thread queues here is recorded instead of run: inside [`Stream::capture`], or because
    /// other code captures the stream through its handle. True even for a library that cannot capture.
    #[must_use]
    #[doc(alias = "hipStreamIsCapturing")]
    pub fn is_capturing(&self) -> bool {
        self.is_recording() || self.is_captured_by_handle()
    }

    /// Whether [`Stream::capture`] records what this thread queues here. Makes no call, so it is almost free.
    #[must_use]
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recorder().is_some()
    }

    /// Whether other code is capturing the stream. `false` if HIP does not tell: it has failed, which is no capture, and
    /// the next call on the stream returns its error.
    pub(crate) fn is_captured_by_handle(&self) -> bool {
        self.ask_captured().unwrap_or(false)
    }

    /// Asks HIP whether it captures the stream.
    fn ask_captured(&self) -> Result<bool> {
        // HIP can capture no default stream.
        if self.raw().is_null() {
            return Ok(false);
        }
        let mut status = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
        // SAFETY: writes one number to the address given; the stream is alive.
        let asked = unsafe {
            call!(
                self.device().runtime(),
                hipStreamIsCapturing(self.raw(), &mut status),
                "hipStreamIsCapturing({:?})",
                self.raw()
            )
        };
        match asked {
            Ok(()) => Ok(status != hipStreamCaptureStatus::hipStreamCaptureStatusNone),
            // A HIP without the function has no captures.
            Err(Error::MissingSymbol { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The handle that receives the work this thread queues now: this stream's own, or inside [`Stream::capture`] that of
    /// the recording stream, which is valid until the capture ends.
    ///
    /// # Errors
    ///
    /// As [`check_uncaptured`](Self::check_uncaptured).
    pub fn raw_for_work(&self) -> Result<hipStream_t> {
        match self.recorder() {
            Some(recorder) => Ok(recorder),
            None => self.raw_uncaptured(),
        }
    }

    /// The stream's own handle, for what is not recorded.
    pub(crate) fn raw_uncaptured(&self) -> Result<hipStream_t> {
        self.check_uncaptured()?;
        Ok(self.raw())
    }

    /// For code that queues work by a handle it was given earlier: refuses a [foreign](Self::is_foreign) stream that
    /// its owner captures. For other streams it makes no call.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`]: the work would not run, but become a part of the owner's graph. Or HIP does not tell.
    #[inline]
    pub fn check_uncaptured(&self) -> Result<()> {
        if self.is_foreign() && self.ask_captured()? {
            return Err(Error::NotSupported {
                what: "work on a foreign stream during its owner's capture",
                reason: "the work would become a part of the owner's graph instead of running; make the call before or \
                         after the capture, or on another stream",
            });
        }
        Ok(())
    }

    /// Refuses what cannot be part of a graph.
    pub(crate) fn not_capturing(&self, what: &'static str) -> Result<()> {
        if self.is_recording() || self.ask_captured()? {
            return Err(refusal(what));
        }
        Ok(())
    }

    /// Refuses what [`Stream::capture`] cannot record, and what would spoil the capture of a foreign stream by its owner.
    pub(crate) fn not_recording(&self, what: &'static str) -> Result<()> {
        if self.is_recording() {
            return Err(refusal(what));
        }
        self.check_uncaptured()
    }

    /// Lets the graph keep what its work uses, if [`Stream::capture`] records what this thread queues here; nothing if
    /// not. It is dropped after the last run of the graph.
    pub fn keep_if_recording<T: Any + Send + Sync>(&self, used: &Arc<T>) {
        self.keep(used, None);
    }

    /// As [`keep_if_recording`](Self::keep_if_recording), for what makes work that may never end by itself. Before the
    /// graph's end waits for a stream on which it was launched, it calls `before_wait` with that stream, which makes sure
    /// that the wait ends.
    pub fn keep_awaited_if_recording<T: Any + Send + Sync>(&self, used: &Arc<T>, before_wait: fn(&Arc<T>, &Stream)) {
        let kept = used.clone();
        self.keep(used, Some(Arc::new(move |stream| before_wait(&kept, stream))));
    }

    fn keep<T: Any + Send + Sync>(&self, used: &Arc<T>, before_wait: Option<BeforeWait>) {
        self.with_recording(|recording| {
            let kept: Arc<dyn Any + Send + Sync> = used.clone();
            let mut all = recording.used.borrow_mut();
            if !all.iter().any(|other| Arc::ptr_eq(&other.kept, &kept)) {
                all.push(Used { kept, before_wait });
            }
        });
    }

    /// The HIP stream that records this stream's work for this thread.
    fn recorder(&self) -> Option<hipStream_t> {
        self.with_recording(|recording| recording.recorder)
    }

    /// Looks at the recording of this stream's work by this thread, if there is one.
    fn with_recording<R>(&self, look: impl FnOnce(&Recording) -> R) -> Option<R> {
        let mut next = INNERMOST.get();
        while !next.is_null() {
            // SAFETY: a live value up this thread's stack: it leaves the list before it is dropped, also on unwinding.
            let recording = unsafe { &*next };
            if recording.stream == self.address() {
                return Some(look(recording));
            }
            next = recording.outer;
        }
        None
    }
}

fn refusal(what: &'static str) -> Error {
    Error::NotSupported {
        what,
        reason: "the stream is being captured, and a graph would repeat an operation that is allowed only once; do it outside `capture`",
    }
}
