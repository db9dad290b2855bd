use std::fmt;
use std::ptr;
use std::sync::Arc;

use hip_sys::{hipGraph_t, hipGraphExec_t, hipStreamCaptureMode, hipStreamCaptureStatus};
use parking_lot::Mutex;

use crate::call::{call, code};
use crate::{Device, Error, KernelArg, Result, Stream, report};

/// Work that was captured from a stream, and not done yet.
///
/// It may move to another thread, but two threads cannot use it at once:
///
/// ```compile_fail,E0277
/// fn shared(graph: &hip::Graph) {
///     std::thread::scope(|scope| drop(scope.spawn(|| graph.node_count())));
/// }
/// ```
#[doc(alias = "hipGraph_t")]
pub struct Graph {
    device: Device,
    raw: hipGraph_t,
}

/// A graph made ready to run, any number of times. Cloning is cheap; the last owner waits for the runs and destroys it.
///
/// What memory it uses only its maker knows, so running it is a promise:
///
/// ```compile_fail,E0133
/// fn run(graph: &hip::GraphExec, stream: &hip::Stream) -> hip::Result<()> {
///     graph.launch(stream, &[])
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "hipGraphExec_t")]
pub struct GraphExec {
    core: Arc<Exec>,
}

struct Exec {
    device: Device,
    raw: hipGraphExec_t,
    /// Streams that may still run it.
    launched: Mutex<Vec<Stream>>,
}

// SAFETY: a graph is a handle that is not thread-safe to change ("not internally synchronized"), but may be moved.
unsafe impl Send for Graph {}
// SAFETY: as for `Graph`; launching does not change it, and the list is behind a lock that launches hold.
unsafe impl Send for Exec {}
// SAFETY: as for `Send`.
unsafe impl Sync for Exec {}

impl Stream {
    /// Captures what `work` queues on this stream, instead of doing it. What other threads do is not affected.
    ///
    /// Waiting is no work: functions that wait for this stream fail and spoil the capture, among them copies from and to
    /// slices of the host. Copy through [`PinnedBuffer`](crate::PinnedBuffer). Host functions and allocation in stream order are
    /// refused, because they happen once and a graph runs many times.
    ///
    /// ```no_run
    /// # fn f(stream: &hip::Stream, buffer: &mut hip::DeviceBuffer<f32>) -> hip::Result<()> {
    /// let graph = stream.capture(|stream| buffer.on_mut(stream)?.fill_zero())?.instantiate()?;
    /// for _ in 0..3 {
    ///     let slice = buffer.on_mut(stream)?;
    ///     // SAFETY: the graph fills this one buffer.
    ///     unsafe { graph.launch(stream, &[&slice])? };
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// That of `work`, or HIP's if the capture was spoiled; nothing of it is left.
    #[doc(alias("hipStreamBeginCapture", "hipStreamEndCapture"))]
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        self.device().make_current()?;
        let mode = hipStreamCaptureMode::hipStreamCaptureModeThreadLocal;
        // SAFETY: the stream is alive, and not the null stream.
        unsafe {
            call!(
                self.device().runtime(),
                hipStreamBeginCapture(self.raw(), mode),
                "hipStreamBeginCapture({mode:?})"
            )?;
        }
        let capture = Capture { stream: self };
        let outcome = work(self);
        std::mem::forget(capture);
        let graph = end(self);
        outcome.and(graph)
    }

    /// Whether the stream is being captured. A library that cannot capture never is.
    pub(crate) fn is_capturing(&self) -> bool {
        let mut status = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
        // SAFETY: writes one number to the address given; the stream is alive.
        let asked = unsafe {
            code!(
                self.device().runtime(),
                hipStreamIsCapturing(self.raw(), &mut status)
            )
        };
        asked.is_ok() && status != hipStreamCaptureStatus::hipStreamCaptureStatusNone
    }

    /// Refuses what must not be part of a graph.
    pub(crate) fn not_capturing(&self, what: &'static str) -> Result<()> {
        if self.is_capturing() {
            return Err(Error::NotSupported {
                what,
                reason: "the stream is being captured, and a graph would do again what can be done once; do it outside of `capture`",
            });
        }
        Ok(())
    }
}

/// Ends the capture if `work` panics.
struct Capture<'a> {
    stream: &'a Stream,
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if let Err(error) = end(self.stream) {
            self.stream.device().runtime().defer(error);
        }
    }
}

/// Ends the capture, whatever became of it: a stream that stays captured is good for nothing.
fn end(stream: &Stream) -> Result<Graph> {
    let outcome = try_end(stream);
    if outcome.is_err() && stream.is_capturing() {
        drop(try_end(stream));
    }
    outcome
}

fn try_end(stream: &Stream) -> Result<Graph> {
    stream.device().make_current()?;
    let mut raw = ptr::null_mut();
    // SAFETY: writes one handle to the address given; all callers began the capture in this thread.
    unsafe {
        call!(
            stream.device().runtime(),
            hipStreamEndCapture(stream.raw(), &mut raw),
            "hipStreamEndCapture()"
        )?;
    }
    if raw.is_null() {
        return Err(Error::Answer {
            call: "hipStreamEndCapture",
            answer: "null".to_owned(),
            expected: "a graph",
        });
    }
    Ok(Graph {
        device: stream.device().clone(),
        raw,
    })
}

impl Graph {
    /// How many nodes it has.
    ///
    /// # Errors
    ///
    /// HIP cannot tell.
    #[doc(alias = "hipGraphGetNodes")]
    pub fn node_count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the graph is alive; without a list only the number is written.
        unsafe {
            call!(
                self.device.runtime(),
                hipGraphGetNodes(self.raw, ptr::null_mut(), &mut count),
                "hipGraphGetNodes()"
            )?;
        }
        Ok(count)
    }

    /// Makes it ready to run. The graph itself is not needed afterwards.
    ///
    /// # Errors
    ///
    /// HIP refused it.
    #[doc(alias = "hipGraphInstantiate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.device.make_current()?;
        let mut raw = ptr::null_mut();
        let mut log = [0; 256];
        let mut node = ptr::null_mut();
        // SAFETY: writes two handles and a text of at most the given length; the graph is alive.
        unsafe {
            call!(
                self.device.runtime(),
                hipGraphInstantiate(&mut raw, self.raw, &mut node, log.as_mut_ptr(), log.len()),
                "hipGraphInstantiate()"
            )?;
        }
        Ok(GraphExec {
            core: Arc::new(Exec {
                device: self.device.clone(),
                raw,
                launched: Mutex::default(),
            }),
        })
    }
}

impl GraphExec {
    /// Queues a run on `stream`. The host does not wait.
    ///
    /// # Safety
    ///
    /// - `slices` show all memory that the captured work uses, with the same access: they put this run in order with other uses.
    /// - The modules of captured kernels are still loaded, and flags and events still there, until the run is done.
    /// - The captured work has the same values that were passed by value when it was captured, so what it does with them is
    ///   still within those slices.
    ///
    /// # Errors
    ///
    /// [`Error::WrongStream`] for a slice of another stream, a stream of another device, or HIP refused it.
    #[doc(alias = "hipGraphLaunch")]
    pub unsafe fn launch(&self, stream: &Stream, slices: &[&dyn KernelArg]) -> Result<()> {
        const CALL: &str = "GraphExec::launch";
        let device = &self.core.device;
        device.check_same(stream.device(), CALL, "stream")?;
        if let Some(position) = slices
            .iter()
            .position(|slice| slice.stream().is_some_and(|bound| bound != stream))
        {
            return Err(Error::WrongStream {
                call: CALL,
                argument: format!("slice {position}"),
            });
        }
        device.make_current()?;
        let mut launched = self.core.launched.lock();
        if !launched.contains(stream) {
            launched.retain(|other| !other.is_only_owner() || !matches!(other.is_idle(), Ok(true)));
            launched.push(stream.clone());
        }
        // SAFETY: graph and stream are alive and of one device; the caller vouches for what the work uses.
        unsafe {
            call!(
                device.runtime(),
                hipGraphLaunch(self.core.raw, stream.raw()),
                "hipGraphLaunch()"
            )
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and this is its last use; what was instantiated is a copy.
        let destroyed = unsafe {
            call!(
                self.device.runtime(),
                hipGraphDestroy(self.raw),
                "hipGraphDestroy()"
            )
        };
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let mut settled = true;
        for stream in std::mem::take(self.launched.get_mut()) {
            settled &= stream.settle();
        }
        if !settled {
            report::leaked("graph", 0);
            return;
        }
        // SAFETY: the handle is alive, this is its last use, and no run of it is left.
        let destroyed = unsafe {
            call!(
                self.device.runtime(),
                hipGraphExecDestroy(self.raw),
                "hipGraphExecDestroy()"
            )
        };
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("device", &self.device.ordinal())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphExec")
            .field("device", &self.core.device.ordinal())
            .finish_non_exhaustive()
    }
}
