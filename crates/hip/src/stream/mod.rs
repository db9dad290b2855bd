//! Streams: the order of work in one and between several, and who still uses what.

mod completion;
mod host_function;
mod kept;
mod launched;
mod order;
mod recording;
mod uses;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fmt, ptr};

pub use completion::Completion;
use hip_sys::{hipError_t, hipStream_t};
pub(crate) use launched::Launched;
use parking_lot::Mutex;
pub(crate) use recording::{Recording, Used};
pub(crate) use uses::Uses;

use self::kept::Kept;
use crate::call::{call, code};
use crate::{Device, Error, Event, Result, report};

/// A queue of work that the device runs in order. Clones are cheap and refer to the same stream.
///
/// Memory keeps the streams it was used on alive until that work is waited for. The last owner waits for the stream's
/// work and destroys it, unless it is someone else's ([`Stream::from_raw`]).
pub struct Stream {
    core: Arc<Core>,
    /// Whether it is one of the core's holders.
    holds: bool,
}

struct Core {
    device: Device,
    raw: hipStream_t,
    /// Whether the stream is destroyed with its last owner.
    owned: bool,
    /// The clones that may queue work.
    holders: AtomicUsize,
    /// Recorded here, waited for elsewhere, and recorded again: a wait keeps to the record it saw when it was queued.
    fence: Mutex<Option<Event>>,
    /// What queued work uses, until a wait has shown that it is done.
    kept: Mutex<Kept>,
    /// Whether its failure is among the deferred errors: HIP reports it at each call.
    deferred: AtomicBool,
    /// What keeps someone else's stream alive. The last field: dropping it may destroy the stream.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the handle may be used from any thread: HIP says of `hipSetDevice`, which fixes a thread's device, "may be
// called from any host thread. Multiple host threads may use the same device", and of `hipStreamQuery` "this is
// thread-safe [...] if other host threads are sending work to the stream, the status may change". Everything else in
// here is behind a lock.
unsafe impl Send for Core {}
// SAFETY: as for `Send`.
unsafe impl Sync for Core {}

impl Device {
    /// A new stream that is not ordered against the null stream.
    ///
    /// # Errors
    ///
    /// HIP could not create it.
    #[doc(alias = "hipStreamCreateWithFlags")]
    pub fn stream(&self) -> Result<Stream> {
        Stream::create(self)
    }
}

impl Stream {
    fn create(device: &Device) -> Result<Self> {
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; HIP defines the flag.
        unsafe {
            call!(
                device.runtime(),
                hipStreamCreateWithFlags(&mut raw, hip_sys::hipStreamNonBlocking),
                "hipStreamCreateWithFlags(hipStreamNonBlocking, device {})",
                device.ordinal()
            )?;
        }
        Ok(Self::with(device, raw, true, ()))
    }

    /// A stream of the greatest priority.
    ///
    /// ROCm maps all streams of one priority, the default stream among them, to four hardware queues
    /// (`GPU_MAX_HW_QUEUES`), and a stream that waits stops the others of its queue. Streams of another priority have
    /// queues of their own.
    pub(crate) fn create_urgent(device: &Device) -> Result<Self> {
        let api = device.runtime().api();
        if api.hipDeviceGetStreamPriorityRange.is_none() || api.hipStreamCreateWithPriority.is_none() {
            return Self::create(device);
        }
        device.make_current()?;
        let (mut least, mut greatest) = (0, 0);
        let mut raw = ptr::null_mut();
        // SAFETY: writes two numbers, and then one handle, to the addresses given; HIP defines the flag.
        unsafe {
            call!(
                device.runtime(),
                hipDeviceGetStreamPriorityRange(&mut least, &mut greatest),
                "hipDeviceGetStreamPriorityRange(device {})",
                device.ordinal()
            )?;
            call!(
                device.runtime(),
                hipStreamCreateWithPriority(&mut raw, hip_sys::hipStreamNonBlocking, greatest),
                "hipStreamCreateWithPriority(hipStreamNonBlocking, {greatest}, device {})",
                device.ordinal()
            )?;
        }
        Ok(Self::with(device, raw, true, ()))
    }

    fn with(device: &Device, raw: hipStream_t, owned: bool, owner: impl Any + Send + Sync) -> Self {
        Self {
            core: Arc::new(Core {
                device: device.clone(),
                raw,
                owned,
                holders: AtomicUsize::new(1),
                fence: Mutex::new(None),
                kept: Mutex::default(),
                deferred: AtomicBool::new(false),
                _owner: Box::new(owner),
            }),
            holds: true,
        }
    }

    /// A stream that other code created: null, or `hipStreamLegacy`, is the device's default stream. The last clone of the
    /// result waits for the stream's work and then drops `owner`, which keeps the stream alive: a value whose drop
    /// destroys it, a counted reference to one, or `()` for a stream that lasts as long as the process.
    ///
    /// The records of what was used on the stream, in buffers, modules and executable graphs, hold clones, too: the
    /// last one can go long after those of the program.
    ///
    /// A call that queues work on a foreign stream first asks HIP whether its owner captures it, and is
    /// [`Error::NotSupported`] if so: the work would become a part of the owner's graph instead of running. A call that
    /// orders another stream after it, or waits for it, is refused, too. Destructors wait all the same, which spoils the
    /// capture, as it does for any caller of HIP; memory whose end they cannot see is leaked.
    ///
    /// # Safety
    ///
    /// * `raw` is null or a stream of this runtime's HIP library, and stays one until `owner` is dropped: HIP counts no
    ///   references to a stream. On an error that is at once.
    /// * Other code does not begin a capture of it on one thread while another thread makes a call with the result.
    /// * The drop of `owner` neither calls this crate nor waits for a thread that does: it can run inside any call with
    ///   memory, a module or a graph that was used on the stream, under the lock of its record.
    /// * If the library cannot tell whose it is (no `hipStreamGetDevice`), it is a stream of `device`.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] for `hipStreamPerThread`, [`Error::WrongDevice`] for a stream of another device, or HIP
    /// does not know it.
    #[doc(alias = "hipStreamGetDevice")]
    pub unsafe fn from_raw(device: &Device, raw: hipStream_t, owner: impl Any + Send + Sync) -> Result<Self> {
        if raw == hip_sys::hipStreamPerThread {
            return Err(Error::NotSupported {
                what: "`hipStreamPerThread`",
                reason: "it names another stream on each thread; pass null or a stream of `hipStreamCreate`",
            });
        }
        // One stream has one handle, which is what other layers tell streams apart by.
        let raw = if raw == hip_sys::hipStreamLegacy {
            ptr::null_mut()
        } else {
            raw
        };
        device.make_current()?;
        // The default stream is that of the current device.
        if !raw.is_null() && device.runtime().api().hipStreamGetDevice.is_some() {
            let mut ordinal = -1;
            // SAFETY: the caller's stream; writes one int to the address given.
            unsafe {
                call!(
                    device.runtime(),
                    hipStreamGetDevice(raw, &mut ordinal),
                    "hipStreamGetDevice({raw:?})"
                )?;
            }
            if ordinal != device.index() {
                return Err(Error::WrongDevice {
                    call: "Stream::from_raw",
                    argument: "the stream",
                    found: format!("device {ordinal}"),
                    expected: format!("device {}", device.ordinal()),
                });
            }
        }
        Ok(Self::with(device, raw, false, owner))
    }

    /// The device that runs the work.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.core.device
    }

    /// The handle, valid for as long as a clone of this stream lives.
    ///
    /// Work queued through the handle is ordered with this stream's work, but buffers do not track it, and
    /// [`capture`](Self::capture) does not record it. Code that begins a capture through the handle answers for it: while
    /// that capture lasts, no call of this crate queues work on the stream or orders another one after it, unless the
    /// stream [is foreign](Self::is_foreign). Only then do calls ask, because asking has its price.
    #[must_use]
    pub fn raw(&self) -> hipStream_t {
        self.core.raw
    }

    /// Whether it is a stream of other code ([`Stream::from_raw`]), which other values may also refer to.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        !self.core.owned
    }

    /// Waits until all work queued so far has completed.
    ///
    /// # Errors
    ///
    /// The work failed, or earlier work failed and the error was not yet reported.
    /// [`Error::NotSupported`](crate::Error::NotSupported) inside [`capture`](Self::capture): recorded work does not
    /// run.
    #[doc(alias = "hipStreamSynchronize")]
    pub fn synchronize(&self) -> Result<()> {
        self.not_recording("waiting for a stream")?;
        self.core.synchronize()
    }

    /// Whether all work queued so far has completed.
    ///
    /// # Errors
    ///
    /// The work failed.
    #[doc(alias = "hipStreamQuery")]
    pub fn is_idle(&self) -> Result<bool> {
        self.core.is_idle()
    }

    /// Queues work that uses `used`, which stays alive until the work has been waited for.
    ///
    /// Keeping and queueing are one step with respect to concurrent waits for the stream: a wait that ends before the
    /// work is queued must not treat its resources as unused. They are kept even on an error, because HIP may have
    /// queued part of the work.
    ///
    /// A stream that is never waited for is queried now and then, so the list of what it keeps does not grow.
    pub(crate) fn queue_with<T: Any + Send + Sync>(
        &self,
        used: &Arc<T>,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut kept = self.core.kept.lock();
        // A stream that is recorded is not asked: that would end the capture.
        let done = match kept.is_due() && self.raw_for_work()? == self.core.raw {
            true => {
                let is_idle = self.core.is_idle()?;
                Some(kept.look(is_idle))
            }
            false => None,
        };
        kept.keep(used);
        let queued = queue();
        // To free it may call HIP.
        drop(kept);
        drop(done);
        queued
    }

    /// Queues work with a call that this crate does not have. `queue` receives the handle that accepts this stream's
    /// work: inside [`capture`](Self::capture) that of the stream which records it.
    ///
    /// # Errors
    ///
    /// The code that `queue` returned, told as one of `call`. [`Error::NotSupported`] for a foreign stream that its
    /// owner captures; `queue` is not called then.
    ///
    /// # Safety
    ///
    /// `queue` queues work on this handle and does not keep it. What the work uses stays alive until it has run, and in
    /// a capture for as long as the graph.
    pub unsafe fn queue_by_handle(
        &self,
        call: &'static str,
        queue: impl FnOnce(hipStream_t) -> hipError_t,
    ) -> Result<()> {
        self.device().make_current()?;
        match queue(self.raw_for_work()?) {
            hipError_t::hipSuccess => Ok(()),
            code => Err(self.device().runtime().failure(code, call.to_owned())),
        }
    }

    /// Tells this stream from all others for as long as a clone of it lives.
    pub(crate) fn address(&self) -> *mut () {
        Arc::as_ptr(&self.core).cast_mut().cast()
    }

    /// The same stream for a record of who used something. It keeps the stream alive as a clone does, and does not
    /// count as [held](Self::is_held). For layers above, whose records are like those of this one.
    ///
    /// ```compile_fail,E0133
    /// fn unseen(stream: &hip::Stream) -> hip::Stream {
    ///     stream.for_record()
    /// }
    /// ```
    ///
    /// # Safety
    ///
    /// No slice is taken for the result, and no work that uses memory is queued through it: records may forget such a
    /// stream once it is idle.
    #[must_use]
    pub unsafe fn for_record(&self) -> Self {
        self.kept()
    }

    /// As [`for_record`](Self::for_record), in this crate.
    pub(crate) fn kept(&self) -> Self {
        Self {
            core: self.core.clone(),
            holds: false,
        }
    }

    /// Whether there is a clone that was not made by [`for_record`](Self::for_record). If there is none, no slice that
    /// was taken for this value is alive, and nothing can be queued by it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        // What the others queued came before they let go.
        self.core.holders.load(Ordering::Acquire) > 0
    }

    /// For records: whether it has no holder and its work has ended. An error of the work is deferred.
    pub(crate) fn is_over(&self) -> bool {
        // To ask HIP for the state of a stream that its owner captures would spoil the capture.
        !self.is_held()
            && self.check_uncaptured().is_ok()
            && self.is_idle().unwrap_or_else(|error| {
                self.core.defer(error);
                false
            })
    }

    /// For destructors: waits until the stream is idle, defers the error if there is one
    /// ([`Runtime::take_deferred_errors`](crate::Runtime::take_deferred_errors)), and tells whether it is certain that
    /// none of its work runs any more.
    #[must_use = "memory of a stream that may still run must not be freed"]
    pub fn settle(&self) -> bool {
        // The stream itself, even while its work is being recorded: work queued earlier may still run.
        let Err(error) = self.wait_out() else {
            return true;
        };
        self.core.defer(error);
        matches!(self.is_idle(), Ok(true))
    }

    /// Waits as [`Stream::synchronize`], and also if that fails before the work has ended.
    ///
    /// It ends where HIP does not even tell whether the stream is idle. ROCm answers so on every device of the process
    /// once one of them has failed (hipamd/src/hip_internal.hpp, `HIP_INIT_API`), and the others may go on.
    pub(crate) fn wait_out(&self) -> Result<()> {
        let outcome = self.core.synchronize();
        if outcome.is_err() {
            while matches!(self.is_idle(), Ok(false)) {
                std::thread::yield_now();
            }
        }
        outcome
    }
}

impl Clone for Stream {
    fn clone(&self) -> Self {
        self.core.holders.fetch_add(1, Ordering::Relaxed);
        Self {
            core: self.core.clone(),
            holds: true,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.holds {
            self.core.holders.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Two streams are equal if they are clones of one.
impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("device", &self.device().ordinal())
            .field("raw", &self.raw())
            .finish()
    }
}

impl Core {
    fn synchronize(&self) -> Result<()> {
        self.device.make_current()?;
        // Taken before: what another thread keeps meanwhile may not be done when this wait ends.
        let done = std::mem::take(&mut *self.kept.lock());
        // SAFETY: the handle is alive.
        let outcome = unsafe {
            call!(
                self.device.runtime(),
                hipStreamSynchronize(self.raw),
                "hipStreamSynchronize({:?})",
                self.raw
            )
        };
        match outcome {
            Ok(()) => self.deferred.store(false, Ordering::Relaxed),
            Err(_) => self.kept.lock().append(done),
        }
        outcome
    }

    /// Keeps an error that cannot be returned, unless the stream's failure is kept already.
    fn defer(&self, error: Error) {
        if !self.deferred.swap(true, Ordering::Relaxed) {
            self.device.runtime().defer(error);
        }
    }

    fn is_idle(&self) -> Result<bool> {
        self.device.make_current()?;
        // SAFETY: the handle is alive.
        match unsafe { code!(self.device.runtime(), hipStreamQuery(self.raw)) }? {
            hipError_t::hipSuccess => Ok(true),
            hipError_t::hipErrorNotReady => {
                self.device.runtime().forget_last_error();
                Ok(false)
            }
            code => {
                let call = format!("hipStreamQuery({:?})", self.raw);
                Err(self.device.runtime().failure(code, call))
            }
        }
    }

    fn destroy(&self) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the handle is alive, and this is its last use.
        unsafe {
            call!(
                self.device.runtime(),
                hipStreamDestroy(self.raw),
                "hipStreamDestroy({:?})",
                self.raw
            )
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Waiting first is what brings an error of the last work to light.
        let waited = self.synchronize();
        let destroyed = if self.owned { self.destroy() } else { Ok(()) };
        if let Err(error) = waited {
            self.defer(error);
        }
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
        // Only what a failed wait left: it may still be in use.
        let kept = std::mem::take(self.kept.get_mut());
        if !kept.is_empty() {
            report::leaked("what a stream used", 0);
            std::mem::forget(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    unsafe extern "C" fn lost(_: hipStream_t) -> hipError_t {
        hipError_t::hipErrorUnknown
    }

    fn device(change: impl FnOnce(&mut hip_sys::Api)) -> Device {
        let host = platform::select_named(Some("host")).unwrap();
        let mut hip = *host.tables().hip;
        change(&mut hip);
        // SAFETY: one platform's functions, or one that gives no work.
        let runtime = unsafe { Runtime::from_tables(Arc::new(hip), None) };
        runtime.unwrap().device(0).unwrap()
    }

    #[test]
    fn only_a_stream_that_other_code_made_is_foreign() {
        let device = device(|_| ());
        assert!(!device.stream().unwrap().is_foreign());
        // SAFETY: the default stream is never destroyed.
        let default = unsafe { Stream::from_raw(&device, ptr::null_mut(), ()) };
        assert!(default.unwrap().is_foreign());
    }

    #[test]
    fn what_queued_work_uses_is_kept_once_until_a_wait() {
        let stream = device(|_| ()).stream().unwrap();
        let (one, other) = (Arc::new(1), Arc::new(2));
        for _ in 0..2 {
            for used in [&one, &other] {
                stream.queue_with(used, || Ok(())).unwrap();
            }
        }
        assert_eq!(stream.core.kept.lock().len(), 2);
        assert_eq!([&one, &other].map(Arc::strong_count), [2, 2]);
        stream.synchronize().unwrap();
        assert_eq!([&one, &other].map(Arc::strong_count), [1, 1]);
    }

    #[test]
    fn what_a_stream_keeps_does_not_grow_without_a_wait() {
        let stream = device(|_| ()).stream().unwrap();
        for _ in 0..1000 {
            stream.queue_with(&Arc::new(1), || Ok(())).unwrap();
            assert!(stream.core.kept.lock().len() <= 64);
        }
    }

    #[test]
    fn what_a_stream_keeps_while_it_works_stays() {
        unsafe extern "C" fn at_work(_: hipStream_t) -> hipError_t {
            hipError_t::hipErrorNotReady
        }
        let stream = device(|hip| hip.hipStreamQuery = Some(at_work)).stream().unwrap();
        let all: Vec<_> = (0..1000).map(Arc::new).collect();
        for used in &all {
            stream.queue_with(used, || Ok(())).unwrap();
        }
        assert!(all.iter().all(|used| Arc::strong_count(used) == 2));
    }

    #[test]
    fn what_a_lost_stream_may_use_is_kept_forever() {
        let stream = device(|hip| hip.hipStreamSynchronize = Some(lost)).stream().unwrap();
        let used = Arc::new(1);
        stream.queue_with(&used, || Ok(())).unwrap();
        drop(stream);
        assert_eq!(Arc::strong_count(&used), 2);
    }
}
