use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hip::{Device, Stream};
use rccl_sys::{ncclComm_t, ncclResult_t};

use crate::core::{Core, Held, pause};
use crate::library::slot;
use crate::{Error, Library, Result, UniqueId};

/// From NCCL 2.13 and RCCL of ROCm 5.4 on calls can be captured without an environment variable.
const GRAPHS_SINCE: i32 = 21_300;

/// One rank among those that work together, on one device.
///
/// It can move to another thread, but two threads cannot use it at once:
///
/// ```compile_fail,E0277
/// fn share(communicator: &rccl::Communicator) {
///     std::thread::scope(|scope| drop(scope.spawn(|| communicator.check())));
/// }
/// ```
///
/// Dropping it waits for the work that was queued with it. If that fails, or does not end within the
/// [time limit](Self::set_time_limit), it aborts the communicator: the work ends without a result, and the error is
/// deferred ([`hip::Runtime::take_deferred_errors`]). Graphs keep it ([`capture`](Self::capture)): it ends with the last.
#[doc(alias = "ncclComm_t")]
pub struct Communicator {
    core: Arc<Core>,
    /// The streams that may still work with it.
    streams: RefCell<Vec<Stream>>,
    one_thread_at_a_time: PhantomData<Cell<()>>,
}

impl Communicator {
    /// Joins the ranks that have this id, as `rank` of `ranks`, and waits for them. Each needs its own thread or process.
    ///
    /// # Errors
    ///
    /// A rank that cannot be, and the library's: the ranks disagree, or could not reach each other. It waits for ever for
    /// a rank that does not come; [`new_within`](Self::new_within) does not.
    #[doc(alias = "ncclCommInitRank")]
    pub fn new(library: &Library, device: &Device, id: &UniqueId, rank: usize, ranks: usize) -> Result<Self> {
        let init = slot(library.api().ncclCommInitRank, "ncclCommInitRank")?;
        check_life(library)?;
        let call = "Communicator::new";
        let (raw_rank, raw_ranks) = check_rank(call, rank, ranks)?;
        library.check_runtime(call, device)?;
        device.make_current()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        let code = unsafe { init(&mut raw, raw_ranks, id.0, raw_rank) };
        library.check(code, None, || {
            format!("ncclCommInitRank(rank {rank} of {ranks}, device {})", device.ordinal())
        })?;
        Ok(Self::of(library, device, raw, (rank, ranks)))
    }

    /// All ranks at once, one for each device, in this process.
    ///
    /// # Errors
    ///
    /// There is no device, two are the same, or the library could not connect them.
    #[doc(alias = "ncclCommInitAll")]
    pub fn all(library: &Library, devices: &[Device]) -> Result<Vec<Self>> {
        let init = slot(library.api().ncclCommInitAll, "ncclCommInitAll")?;
        check_life(library)?;
        let ranks = devices.len();
        let call = "Communicator::all";
        let count = i32::try_from(ranks).ok().filter(|count| *count > 0);
        let count = count.ok_or(Error::NoRank { call, rank: 0, ranks })?;
        devices
            .iter()
            .try_for_each(|device| library.check_runtime(call, device))?;
        // Ordinals came from HIP, which counts in `i32`.
        let ordinals: Vec<i32> = devices.iter().map(|device| device.ordinal() as i32).collect();
        devices[0].make_current()?;
        let mut raw = vec![std::ptr::null_mut(); ranks];
        // SAFETY: reads as many numbers, and writes as many handles, as there are ranks.
        let code = unsafe { init(raw.as_mut_ptr(), count, ordinals.as_ptr()) };
        library.check(code, None, || format!("ncclCommInitAll(devices {ordinals:?})"))?;
        let ranks = raw.into_iter().zip(devices).enumerate();
        Ok(ranks
            .map(|(rank, (raw, device))| Self::of(library, device, raw, (rank, devices.len())))
            .collect())
    }

    /// The ranks of one `color`, in the order of `key`, as a communicator of their own; nothing for a rank without a
    /// color. All ranks have to call it.
    ///
    /// # Errors
    ///
    /// [`Error::MissingSymbol`] before RCCL of ROCm 6, and the library's.
    #[doc(alias = "ncclCommSplit")]
    pub fn split(&self, color: Option<u16>, key: i32) -> Result<Option<Self>> {
        let split = slot(self.library().api().ncclCommSplit, "ncclCommSplit")?;
        self.device().make_current()?;
        let held = self.hold("split")?;
        let number = color.map_or(rccl_sys::NCCL_SPLIT_NOCOLOR, i32::from);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the communicator is alive; writes one handle to the address given; without a configuration the new
        // one has that of this.
        let code = unsafe { split(held.raw(), number, key, &mut raw, std::ptr::null_mut()) };
        self.told(code, || format!("ncclCommSplit(color {number}, key {key})"))?;
        if raw.is_null() {
            return Ok(None);
        }
        let mut part = Core::new(self.library(), self.device(), raw, (0, 0));
        let api = self.library().api();
        part.rank = ask(&part, "ncclCommUserRank", api.ncclCommUserRank)?;
        part.ranks = ask(&part, "ncclCommCount", api.ncclCommCount)?;
        Ok(Some(part.into()))
    }

    pub(crate) fn of(library: &Library, device: &Device, raw: ncclComm_t, place: (usize, usize)) -> Self {
        Core::new(library, device, raw, place).into()
    }

    /// Captures what `work` queues on the stream, calls of this and other communicators included, instead of running it:
    /// [`Stream::capture`] for this crate's errors.
    ///
    /// Each launch of the graph makes its calls again, so what holds for calls holds for launches: each rank launches a
    /// graph with equal calls, in the same order among its other calls. A call is in a graph on all ranks or on none, and
    /// the calls of a communicator in one [group](Library::group) are in one graph. A thread that has several ranks
    /// hangs with NCCL, whose first calls wait for the other ranks, in a capture too, as a launch may: give each rank its
    /// own thread or process.
    ///
    /// Slices for [`GraphExec::launch`](hip::GraphExec::launch) show all memory that the calls use. The communicator is
    /// kept by the graph and what is instantiated from it. Their drop watches launches as [`wait`](Self::wait) does, and
    /// aborts the communicator if they do not end; its further calls are [`Error::Ended`] then.
    ///
    /// # Errors
    ///
    /// The error of `work`, which leaves no graph; [`Error::Captured`] before NCCL 2.13 or RCCL of ROCm 5.4.
    #[doc(alias("hipStreamBeginCapture", "hipStreamEndCapture"))]
    pub fn capture(&self, stream: &Stream, work: impl FnOnce(&Stream) -> Result<()>) -> Result<hip::Graph> {
        self.check_graphs("capture")?;
        stream.capture_told(|_| Ok(()), work)
    }

    /// That the library can be captured.
    pub(crate) fn check_graphs(&self, call: &'static str) -> Result<()> {
        let version = self.library().version()?;
        match version >= GRAPHS_SINCE {
            true => Ok(()),
            false => Err(Error::Captured { call, version }),
        }
    }

    /// This rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.core.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.core.ranks
    }

    /// The device that it works on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    /// The library's handle, valid for as long as this value; null once a graph's drop has aborted it.
    #[must_use]
    pub fn raw(&self) -> ncclComm_t {
        self.core.raw()
    }

    pub(crate) fn library(&self) -> &Library {
        &self.core.library
    }

    /// How long [`wait`](Self::wait), and a drop, also of its graphs, wait for queued work: 10 minutes if never set.
    pub fn set_time_limit(&self, limit: Duration) {
        self.core.set_time_limit(limit);
    }

    /// Whether the communicator has failed, without waiting: what one rank did wrong, or that it is gone.
    ///
    /// # Errors
    ///
    /// The failure. Only [`abort`](Self::abort) makes sense then.
    #[doc(alias = "ncclCommGetAsyncError")]
    pub fn check(&self) -> Result<()> {
        self.core.check()
    }

    /// Waits for the stream's work, and looks for a failure of the communicator meanwhile, which a plain wait for the
    /// stream would not see.
    ///
    /// # Errors
    ///
    /// The failure; [`Error::TimedOut`] at the [time limit](Self::set_time_limit); the stream's own error.
    pub fn wait(&self, stream: &Stream) -> Result<()> {
        self.watch(stream)?;
        Ok(stream.synchronize()?)
    }

    /// Waits until the stream itself is idle, also while its work is being recorded.
    fn watch(&self, stream: &Stream) -> Result<()> {
        let begin = Instant::now();
        loop {
            let idle = stream.is_idle();
            // First: it says why the stream has failed.
            self.check()?;
            if idle? {
                return Ok(());
            }
            if begin.elapsed() > self.core.time_limit() {
                return Err(Error::TimedOut {
                    call: "Communicator::wait",
                    seconds: self.core.time_limit().as_secs_f64(),
                });
            }
            pause(begin);
        }
    }

    /// Ends all work of the communicator without its results, also that of graphs. The other ranks have to abort too.
    ///
    /// While a graph keeps the communicator, this returns at once. The library is told by a thread that waits until the
    /// last graph is dropped, and what a launch does from now on is not specified. The error of that is deferred.
    ///
    /// # Errors
    ///
    /// The library could not.
    #[doc(alias = "ncclCommAbort")]
    pub fn abort(self) -> Result<()> {
        self.core.abort()
    }

    pub(crate) fn told(&self, code: ncclResult_t, call: impl FnOnce() -> String) -> Result<()> {
        self.core.told(code, call)
    }

    /// The handle for a call.
    pub(crate) fn hold(&self, call: &'static str) -> Result<Held<'_>> {
        self.core.hold(call)
    }

    /// Lets the graph that records the stream keep it.
    pub(crate) fn kept_by_graph(&self, stream: &Stream) {
        stream.keep_awaited_if_recording(&self.core, Core::before_wait);
    }

    /// Notes that the stream works with the communicator.
    pub(crate) fn used_on(&self, stream: &Stream) {
        let mut streams = self.streams.borrow_mut();
        if !streams.contains(stream) {
            // SAFETY: it is only asked whether it is idle.
            streams.push(unsafe { stream.for_record() });
        }
    }

    /// Waits for the queued work; whether it is known to have ended well.
    fn settle(&self) -> Result<()> {
        self.streams.borrow().iter().try_for_each(|stream| self.watch(stream))
    }
}

impl From<Core> for Communicator {
    fn from(core: Core) -> Self {
        Self {
            core: Arc::new(core),
            streams: RefCell::default(),
            one_thread_at_a_time: PhantomData,
        }
    }
}

fn ask(
    core: &Core,
    symbol: &'static str,
    get: Option<unsafe extern "C" fn(ncclComm_t, *mut i32) -> ncclResult_t>,
) -> Result<usize> {
    let get = slot(get, symbol)?;
    let mut number = 0;
    // SAFETY: the communicator is alive; writes one number to the address given.
    core.told(unsafe { get(core.raw(), &mut number) }, || format!("{symbol}()"))?;
    Ok(usize::try_from(number).unwrap_or(0))
}

/// Both as the library takes them.
pub(crate) fn check_rank(call: &'static str, rank: usize, ranks: usize) -> Result<(i32, i32)> {
    match (i32::try_from(rank), i32::try_from(ranks)) {
        (Ok(raw_rank), Ok(raw_ranks)) if rank < ranks => Ok((raw_rank, raw_ranks)),
        _ => Err(Error::NoRank { call, rank, ranks }),
    }
}

/// That a communicator can be ended again.
pub(crate) fn check_life(library: &Library) -> Result<()> {
    slot(library.api().ncclCommDestroy, "ncclCommDestroy")?;
    slot(library.api().ncclCommAbort, "ncclCommAbort")?;
    Ok(())
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // Aborted.
        if self.raw().is_null() {
            return;
        }
        if let Err(error) = self.settle() {
            let ended = self.core.abort();
            self.core.defer(error);
            ended.err().into_iter().for_each(|error| self.core.defer(error));
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank())
            .field("ranks", &self.ranks())
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}
