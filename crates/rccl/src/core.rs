//! What a communicator shares with the graphs that have calls of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hip::{Device, Stream};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use rccl_sys::{ncclComm_t, ncclResult_t};

use crate::library::slot;
use crate::{Error, Library, Result};

/// A failure may end the work by itself, and then its owner still asks for it.
const GRACE: Duration = Duration::from_secs(1);

/// One rank, destroyed by its last owner: the [`Communicator`](crate::Communicator), or a graph. The library's calls stay
/// valid in a graph only while the communicator is there, and its end waits until no graph has any.
pub(crate) struct Core {
    pub(crate) library: Library,
    pub(crate) device: Device,
    /// Null once it was aborted. Held during calls, for the end of a graph on another thread may abort it.
    raw: ReentrantMutex<Cell<ncclComm_t>>,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// In nanoseconds.
    time_limit: AtomicU64,
}

// SAFETY: RCCL binds a communicator to a device and not to a thread; every call makes the device current first.
unsafe impl Send for Core {}
// SAFETY: as for `Send`; the handle is behind a lock.
unsafe impl Sync for Core {}

/// A handle that stays alive meanwhile.
pub(crate) struct Held<'c>(ReentrantMutexGuard<'c, Cell<ncclComm_t>>);

impl Held<'_> {
    pub(crate) fn raw(&self) -> ncclComm_t {
        self.0.get()
    }
}

impl Core {
    pub(crate) fn new(library: &Library, device: &Device, raw: ncclComm_t, (rank, ranks): (usize, usize)) -> Self {
        let core = Self {
            library: library.clone(),
            device: device.clone(),
            raw: ReentrantMutex::new(Cell::new(raw)),
            rank,
            ranks,
            time_limit: AtomicU64::default(),
        };
        core.set_time_limit(Duration::from_secs(600));
        core
    }

    pub(crate) fn set_time_limit(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.time_limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_nanos(self.time_limit.load(Ordering::Relaxed))
    }

    /// The handle, or null.
    pub(crate) fn raw(&self) -> ncclComm_t {
        self.raw.lock().get()
    }

    /// The handle for a call.
    pub(crate) fn hold(&self, call: &'static str) -> Result<Held<'_>> {
        let held = Held(self.raw.lock());
        match held.raw().is_null() {
            true => Err(Error::Ended { call }),
            false => Ok(held),
        }
    }

    pub(crate) fn told(&self, code: ncclResult_t, call: impl FnOnce() -> String) -> Result<()> {
        self.library.check(code, Some(self.raw()), call)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let get = slot(self.library.api().ncclCommGetAsyncError, "ncclCommGetAsyncError")?;
        let held = self.hold("Communicator::check")?;
        let mut code = ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is alive; writes one number to the address given.
        self.told(unsafe { get(held.raw(), &mut code) }, || {
            "ncclCommGetAsyncError()".to_owned()
        })?;
        self.told(code, || format!("work of rank {}", self.rank))
    }

    /// Before a graph with calls of it waits for a stream: a plain wait would not see that another rank has failed, and
    /// never end. So the communicator is aborted if the stream does not get idle.
    pub(crate) fn before_wait(self: &Arc<Self>, stream: &Stream) {
        let begin = Instant::now();
        let mut failed = None;
        // A stream that has failed has ended.
        while !stream.is_idle().unwrap_or(true) {
            let error = match self.check() {
                // Its work ends.
                Err(Error::Ended { .. }) => return,
                Err(_) if failed.get_or_insert_with(Instant::now).elapsed() < GRACE => None,
                Err(error) => Some(error),
                Ok(()) if begin.elapsed() > self.time_limit() => Some(Error::TimedOut {
                    call: "drop of a graph",
                    seconds: self.time_limit().as_secs_f64(),
                }),
                Ok(()) => None,
            };
            let Some(error) = error else {
                pause(begin);
                continue;
            };
            self.defer(error);
            if let Err(error) = self.abort() {
                self.defer(error);
            }
            return;
        }
    }

    /// Ends all work without its results. With graphs it returns at once, and the library is done with it when they are
    /// gone.
    pub(crate) fn abort(self: &Arc<Self>) -> Result<()> {
        let raw = self.take();
        if raw.is_null() {
            return Ok(());
        }
        if Arc::strong_count(self) == 1 {
            return self.end(raw, true);
        }
        let ending = Ending {
            of: Self::new(&self.library, &self.device, raw, (self.rank, self.ranks)),
        };
        let spawned = std::thread::Builder::new()
            .name("rccl abort".to_owned())
            .spawn(move || drop(ending));
        spawned.map(drop).map_err(|error| Error::NoThread { error })
    }

    fn take(&self) -> ncclComm_t {
        self.raw.lock().replace(std::ptr::null_mut())
    }

    fn end(&self, raw: ncclComm_t, abort: bool) -> Result<()> {
        self.device.make_current()?;
        let api = self.library.api();
        let (symbol, end) = match abort {
            true => ("ncclCommAbort", api.ncclCommAbort),
            false => ("ncclCommDestroy", api.ncclCommDestroy),
        };
        // SAFETY: the communicator is alive, and not used after this.
        let code = unsafe { slot(end, symbol)?(raw) };
        self.library
            .check(code, None, || format!("{symbol}(rank {} of {})", self.rank, self.ranks))
    }

    /// Keeps an error that cannot be returned.
    pub(crate) fn defer(&self, error: Error) {
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

impl Drop for Core {
    fn drop(&mut self) {
        let raw = self.take();
        if !raw.is_null()
            && let Err(error) = self.end(raw, false)
        {
            self.defer(error);
        }
    }
}

/// A communicator that is aborted on drop, on whichever thread.
struct Ending {
    of: Core,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Err(error) = self.of.end(self.of.take(), true) {
            self.of.defer(error);
        }
    }
}

/// Work of microseconds is not slept through, and long work costs no processor.
pub(crate) fn pause(begin: Instant) {
    match begin.elapsed() < Duration::from_millis(1) {
        true => std::thread::yield_now(),
        false => std::thread::sleep(Duration::from_micros(100)),
    }
}
