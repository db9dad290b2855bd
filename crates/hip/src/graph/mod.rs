//! Work captured once and run often.

mod capture;

use std::sync::Arc;
use std::{fmt, ptr};

use hip_sys::{hipGraph_t, hipGraphExec_t};
use parking_lot::Mutex;

use crate::call::call;
use crate::stream::{Launched, Used};
use crate::{Device, Error, KernelArg, Result, Stream, report};

/// Work that was captured from a stream, and not done yet. It keeps the modules of its kernels loaded.
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
    /// Modules, and graphs that were launched while it was captured. They go after the graph.
    used: Vec<Used>,
}

/// A graph made ready to run, any number of times. Cloning is cheap; the last owner waits for the runs and destroys it.
///
/// Only its maker knows what memory it uses, so running it is `unsafe`:
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
    launched: Mutex<Launched>,
    /// As in [`Graph`].
    used: Vec<Used>,
}

// SAFETY: a graph is a handle that is not thread-safe to change ("not internally synchronized"), but may be moved.
unsafe impl Send for Graph {}
// SAFETY: as for `Graph`; launching does not change it, and the list is behind a lock that launches hold.
unsafe impl Send for Exec {}
// SAFETY: as for `Send`.
unsafe impl Sync for Exec {}

impl Graph {
    /// # Safety
    ///
    /// `raw` is a graph of this device's runtime that no other code destroys.
    pub(crate) unsafe fn from_raw(device: &Device, raw: hipGraph_t) -> Self {
        Self {
            device: device.clone(),
            raw,
            used: Vec::new(),
        }
    }

    /// The same graph, which keeps everything that it uses alive.
    pub(crate) fn keeping(mut self, used: Vec<Used>) -> Self {
        self.used = used;
        self
    }

    /// How many nodes it has.
    ///
    /// # Errors
    ///
    /// HIP cannot report it.
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
                used: self.used.clone(),
            }),
        })
    }
}

impl GraphExec {
    /// Queues a run on `stream`. The host does not wait.
    ///
    /// # Safety
    ///
    /// - `slices` show all memory that the captured work uses, with the same access: they order this run with other
    ///   uses.
    /// - Everything that captured library calls use of their handle stays valid until the run is done: its workspace,
    ///   and what earlier calls left in its memory, such as the pivots of a factorisation. `rocblas::Handle::capture`
    ///   keeps both for the graph, and calls of `rccl` their communicator.
    /// - The captured work has the same values that were passed by value when it was captured, so what it does with
    ///   them is still within those slices.
    ///
    /// # Errors
    ///
    /// [`Error::WrongStream`] for a slice of another stream, a stream of another device, or HIP refused it. A stream
    /// that is being captured is refused: CUDA makes the graph part of the new one, but ROCm (7.2) runs it at once and
    /// records nothing.
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
        stream.not_capturing("launching a graph in a capture")?;
        device.make_current()?;
        let mut launched = self.core.launched.lock();
        if !launched.contains(stream) {
            launched.push(stream);
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
        let destroyed = unsafe { call!(self.device.runtime(), hipGraphDestroy(self.raw), "hipGraphDestroy()") };
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let launched = self.launched.get_mut();
        for stream in launched.iter() {
            self.used.iter().for_each(|used| used.before_wait(stream));
        }
        if !launched.settle() {
            report::leaked("graph", 0);
            // A run may be under way.
            std::mem::forget(std::mem::take(&mut self.used));
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
