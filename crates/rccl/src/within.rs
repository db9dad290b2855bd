//! A start with a limit.
//!
//! Only a communicator that does not block can be given up while it starts. But each of its calls may return
//! `ncclInProgress` and has to be asked for, and the library starts a thread for it. So the one that starts is used once:
//! it is split into a single part that does block, with the same ranks, and ended.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use hip::Device;
use rccl_sys::{ncclComm, ncclComm_t, ncclConfig_t, ncclResult_t};

use crate::communicator::{check_life, check_rank};
use crate::core::pause;
use crate::library::slot;
use crate::{Communicator, Error, Library, Result, UniqueId};

const CALL: &str = "Communicator::new_within";

impl Communicator {
    /// As [`new`](Self::new), but gives up at the limit: a rank that does not come, or ends meanwhile, is not waited for.
    ///
    /// It takes two starts, of which the library can give up only the first kind: expect twice the time of `new`.
    /// Calls of the communicator are those of `new`.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`], and then the id is spent: the ranks need a new one. [`Error::MissingSymbol`] before RCCL of
    /// ROCm 6 or NCCL 2.18. As [`new`](Self::new).
    #[doc(alias("ncclCommInitRankConfig", "ncclCommFinalize"))]
    pub fn new_within(
        library: &Library,
        device: &Device,
        id: &UniqueId,
        rank: usize,
        ranks: usize,
        limit: Duration,
    ) -> Result<Self> {
        let api = library.api();
        let init = slot(api.ncclCommInitRankConfig, "ncclCommInitRankConfig")?;
        let split = slot(api.ncclCommSplit, "ncclCommSplit")?;
        let finalize = slot(api.ncclCommFinalize, "ncclCommFinalize")?;
        let destroy = slot(api.ncclCommDestroy, "ncclCommDestroy")?;
        let get = slot(api.ncclCommGetAsyncError, "ncclCommGetAsyncError")?;
        check_life(library)?;
        let (raw_rank, raw_ranks) = check_rank(CALL, rank, ranks)?;
        library.check_runtime(CALL, device)?;
        device.make_current()?;
        let start = Start {
            library,
            begin: Instant::now(),
            limit,
            get,
        };

        let whole = Starting::new(library, Box::default());
        let mut config = config(false);
        // SAFETY: the place lives as long as the communicator, the configuration until the call has returned.
        let code = unsafe { init(whole.raw.as_ptr(), raw_ranks, id.0, raw_rank, &raw mut config) };
        start.wait(code, &whole, || {
            format!(
                "ncclCommInitRankConfig(rank {rank} of {ranks}, device {})",
                device.ordinal()
            )
        })?;

        // Left where it is if the split fails: what the library then makes of it is not specified.
        let place = Box::into_raw(Box::<Place>::default());
        let mut config = self::config(true);
        // SAFETY: the communicator is alive; the place lives until the split has ended well, the configuration until the
        // call has returned.
        let code = unsafe { split(whole.raw(), 0, raw_rank, (*place).as_ptr(), &raw mut config) };
        let call = || format!("ncclCommSplit(color 0, key {rank})");
        start.wait(code, &whole, call)?;
        // SAFETY: it is the box's, and the library is done with it.
        let part = Starting::new(library, unsafe { Box::from_raw(place) });
        start.wait(ncclResult_t::ncclSuccess, &part, call)?;

        // SAFETY: the communicator is alive.
        let code = unsafe { finalize(whole.raw()) };
        start.wait(code, &whole, || "ncclCommFinalize()".to_owned())?;
        // SAFETY: the communicator is alive, and not used after this.
        let code = unsafe { destroy(whole.take()) };
        library.check(code, None, || "ncclCommDestroy()".to_owned())?;
        Ok(Self::of(library, device, part.take(), (rank, ranks)))
    }
}

/// Waits until the limit.
struct Start<'l> {
    library: &'l Library,
    begin: Instant,
    limit: Duration,
    get: unsafe extern "C" fn(ncclComm_t, *mut ncclResult_t) -> ncclResult_t,
}

impl Start<'_> {
    /// Waits for the end of a call that returned `code`.
    fn wait(&self, code: ncclResult_t, of: &Starting, call: impl Fn() -> String) -> Result<()> {
        let raw = of.raw();
        if code != ncclResult_t::ncclInProgress {
            self.library.check(code, None, &call)?;
        }
        if raw.is_null() {
            return self.library.check(ncclResult_t::ncclInternalError, None, &call);
        }
        loop {
            let mut state = ncclResult_t::ncclSuccess;
            // SAFETY: the communicator is alive; writes one number to the address given.
            let asked = unsafe { (self.get)(raw, &mut state) };
            self.library
                .check(asked, Some(raw), || "ncclCommGetAsyncError()".to_owned())?;
            if state != ncclResult_t::ncclInProgress {
                return self.library.check(state, Some(raw), &call);
            }
            if self.begin.elapsed() > self.limit {
                return Err(Error::TimedOut {
                    call: CALL,
                    seconds: self.limit.as_secs_f64(),
                });
            }
            pause(self.begin);
        }
    }
}

/// Where the library writes a handle, also from a thread of its own.
type Place = AtomicPtr<ncclComm>;

/// A communicator that is aborted unless it is taken.
struct Starting {
    raw: Box<Place>,
    abort: Option<unsafe extern "C" fn(ncclComm_t) -> ncclResult_t>,
}

impl Starting {
    fn new(library: &Library, raw: Box<Place>) -> Self {
        let abort = library.api().ncclCommAbort;
        Self { raw, abort }
    }

    fn raw(&self) -> ncclComm_t {
        self.raw.load(Ordering::Acquire)
    }

    fn take(self) -> ncclComm_t {
        self.raw.swap(std::ptr::null_mut(), Ordering::AcqRel)
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let raw = self.raw();
        if let (false, Some(abort)) = (raw.is_null(), self.abort) {
            // SAFETY: the communicator is alive, and not used after this. What it says of its end is of no use: the error
            // that led here is told.
            let _ = unsafe { abort(raw) };
            // Nothing says that an aborted library writes no more there.
            Box::leak(std::mem::take(&mut self.raw));
        }
    }
}

/// As `NCCL_CONFIG_INITIALIZER` makes it (nccl.h), with one attribute.
fn config(blocking: bool) -> ncclConfig_t {
    const MAGIC: c_uint = 0xcafe_beef;
    const UNDEFINED: c_int = c_int::MIN;
    /// Of the header that the structure is of.
    const VERSION: c_uint = 22707;
    ncclConfig_t {
        size: size_of::<ncclConfig_t>(),
        magic: MAGIC,
        version: VERSION,
        blocking: c_int::from(blocking),
        cgaClusterSize: UNDEFINED,
        minCTAs: UNDEFINED,
        maxCTAs: UNDEFINED,
        netName: std::ptr::null(),
        splitShare: UNDEFINED,
        trafficClass: UNDEFINED,
        commName: std::ptr::null(),
        collnetEnable: UNDEFINED,
        CTAPolicy: UNDEFINED,
        shrinkShare: UNDEFINED,
        nvlsCTAs: UNDEFINED,
    }
}
