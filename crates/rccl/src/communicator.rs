use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use hip::{Device, Stream};
use rccl_sys::{ncclComm_t, ncclResult_t};

use crate::library::slot;
use crate::{Error, Library, Result, UniqueId};

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
/// deferred ([`hip::Runtime::take_deferred_errors`]).
#[doc(alias = "ncclComm_t")]
pub struct Communicator {
    library: Library,
    device: Device,
    raw: ncclComm_t,
    rank: usize,
    ranks: usize,
    time_limit: Cell<Duration>,
    /// The streams that may still work with it.
    streams: RefCell<Vec<Stream>>,
    one_thread_at_a_time: PhantomData<Cell<()>>,
}

// SAFETY: RCCL binds a communicator to a device and not to a thread; every call here makes the device current first.
unsafe impl Send for Communicator {}

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
        let split = slot(self.library.api().ncclCommSplit, "ncclCommSplit")?;
        self.device.make_current()?;
        let number = color.map_or(rccl_sys::NCCL_SPLIT_NOCOLOR, i32::from);
        let mut raw = std::ptr::null_mut();
        // SAFETY: the communicator is alive; writes one handle to the address given; without a configuration the new
        // one has that of this.
        let code = unsafe { split(self.raw, number, key, &mut raw, std::ptr::null_mut()) };
        self.told(code, || format!("ncclCommSplit(color {number}, key {key})"))?;
        if raw.is_null() {
            return Ok(None);
        }
        let mut part = Self::of(&self.library, &self.device, raw, (0, 0));
        let api = self.library.api();
        part.rank = part.ask("ncclCommUserRank", api.ncclCommUserRank)?;
        part.ranks = part.ask("ncclCommCount", api.ncclCommCount)?;
        Ok(Some(part))
    }

    fn ask(
        &self,
        symbol: &'static str,
        get: Option<unsafe extern "C" fn(ncclComm_t, *mut i32) -> ncclResult_t>,
    ) -> Result<usize> {
        let get = slot(get, symbol)?;
        let mut number = 0;
        // SAFETY: the communicator is alive; writes one number to the address given.
        self.told(unsafe { get(self.raw, &mut number) }, || format!("{symbol}()"))?;
        Ok(usize::try_from(number).unwrap_or(0))
    }

    pub(crate) fn of(library: &Library, device: &Device, raw: ncclComm_t, (rank, ranks): (usize, usize)) -> Self {
        Self {
            library: library.clone(),
            device: device.clone(),
            raw,
            rank,
            ranks,
            time_limit: Cell::new(Duration::from_secs(600)),
            streams: RefCell::default(),
            one_thread_at_a_time: PhantomData,
        }
    }

    /// This rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The device that it works on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The library's handle, valid for as long as this value.
    #[must_use]
    pub fn raw(&self) -> ncclComm_t {
        self.raw
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// How long [`wait`](Self::wait), and a drop, wait for queued work: 10 minutes if never set.
    pub fn set_time_limit(&self, limit: Duration) {
        self.time_limit.set(limit);
    }

    /// Whether the communicator has failed, without waiting: what one rank did wrong, or that it is gone.
    ///
    /// # Errors
    ///
    /// The failure. Only [`abort`](Self::abort) makes sense then.
    #[doc(alias = "ncclCommGetAsyncError")]
    pub fn check(&self) -> Result<()> {
        let get = slot(self.library.api().ncclCommGetAsyncError, "ncclCommGetAsyncError")?;
        let mut code = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is alive; writes one number to the address given.
        self.told(unsafe { get(self.raw, &mut code) }, || {
            "ncclCommGetAsyncError()".to_owned()
        })?;
        self.told(code, || format!("work of rank {}", self.rank))
    }

    /// Waits for the stream's work, and looks for a failure of the communicator meanwhile, which a plain wait for the
    /// stream would not see.
    ///
    /// # Errors
    ///
    /// The failure; [`Error::TimedOut`] at the [time limit](Self::set_time_limit); the stream's own error.
    pub fn wait(&self, stream: &Stream) -> Result<()> {
        let begin = Instant::now();
        loop {
            let idle = stream.is_idle();
            // First: it says why the stream has failed.
            self.check()?;
            if idle? {
                return Ok(stream.synchronize()?);
            }
            if begin.elapsed() > self.time_limit.get() {
                return Err(Error::TimedOut {
                    call: "Communicator::wait",
                    seconds: self.time_limit.get().as_secs_f64(),
                });
            }
            pause(begin);
        }
    }

    /// Ends all work of the communicator without its results. The other ranks have to abort too.
    ///
    /// # Errors
    ///
    /// The library could not.
    #[doc(alias = "ncclCommAbort")]
    pub fn abort(self) -> Result<()> {
        let mut ended = self;
        let result = ended.end(true);
        // What is left has nothing to end.
        ended.raw = std::ptr::null_mut();
        result
    }

    pub(crate) fn told(&self, code: ncclResult_t, call: impl FnOnce() -> String) -> Result<()> {
        self.library.check(code, Some(self.raw), call)
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
        self.streams.borrow().iter().try_for_each(|stream| self.wait(stream))
    }

    fn end(&self, abort: bool) -> Result<()> {
        self.device.make_current()?;
        let api = self.library.api();
        let (symbol, end) = match abort {
            true => ("ncclCommAbort", api.ncclCommAbort),
            false => ("ncclCommDestroy", api.ncclCommDestroy),
        };
        // SAFETY: the communicator is alive, and not used after this.
        let code = unsafe { slot(end, symbol)?(self.raw) };
        self.library
            .check(code, None, || format!("{symbol}(rank {} of {})", self.rank, self.ranks))
    }
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

/// Work of microseconds is not slept through, and long work costs no processor.
pub(crate) fn pause(begin: Instant) {
    match begin.elapsed() < Duration::from_millis(1) {
        true => std::thread::yield_now(),
        false => std::thread::sleep(Duration::from_micros(100)),
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        let settled = self.settle();
        let ended = self.end(settled.is_err());
        for error in [settled, ended].into_iter().filter_map(Result::err) {
            self.device.runtime().defer(match error {
                Error::Hip(error) => error,
                error => hip::Error::Call {
                    call: "drop of a communicator".to_owned(),
                    code: error.code().map_or(0, |code| code.0.into()),
                    name: "RCCL",
                    remedy: error.to_string(),
                },
            });
        }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank)
            .field("ranks", &self.ranks)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
