//! In-order command queues.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use opencl_sys::cl_command_queue;

use crate::api::slot;
use crate::context::Context;
use crate::deferred::Deferred;
use crate::error::{Error, Result, check};
use crate::handle::{Handle, Live};

/// An in-order command queue. Clones name the same queue.
///
/// Each command takes a number once it is enqueued, and the queue remembers up to which number all
/// commands have ended. From the two, memory that the queue used knows whether it must still wait before it is freed.
#[derive(Clone)]
pub struct Queue {
    inner: Arc<Inner>,
    /// The errors of this holder of the queue: each lease has its own.
    deferred: Arc<Deferred>,
}

struct Inner {
    raw: Handle,
    context: Context,
    profiling: bool,
    enqueued: AtomicU64,
    ended: AtomicU64,
    /// The errors of the holders without a lease.
    deferred: Arc<Deferred>,
}

static LIVE: Live<Inner> = Live::new();

impl Context {
    /// A new in-order queue.
    ///
    /// # Errors
    ///
    /// An error from `clCreateCommandQueue`.
    pub fn queue(&self) -> Result<Queue> {
        Queue::create(self, false)
    }

    /// A new in-order queue whose events record times, see [`Event::profile`](crate::Event::profile).
    ///
    /// # Errors
    ///
    /// An error from `clCreateCommandQueue`.
    pub fn profiling_queue(&self) -> Result<Queue> {
        Queue::create(self, true)
    }
}

/// A queue that may be gone.
#[derive(Clone)]
pub struct WeakQueue(Weak<Inner>);

impl WeakQueue {
    /// The queue, if a clone of it is alive.
    #[must_use]
    pub fn upgrade(&self) -> Option<Queue> {
        self.0.upgrade().map(Queue::of)
    }
}

impl Queue {
    fn of(inner: Arc<Inner>) -> Self {
        let deferred = inner.deferred.clone();
        Self { inner, deferred }
    }

    pub(crate) fn create(context: &Context, profiling: bool) -> Result<Self> {
        let api = context.api();
        let create = slot!(api, clCreateCommandQueue)?;
        let properties = if profiling {
            opencl_sys::CL_QUEUE_PROFILING_ENABLE
        } else {
            0
        };
        let mut code = 0;
        // SAFETY: the device is the context's own; `code` is a valid place.
        let raw = unsafe { create(context.raw(), context.device().raw(), properties, &raw mut code) };
        check(code, || format!("clCreateCommandQueue(`{}`)", context.device().name()))?;
        Ok(Self::enter(Handle(raw), context, profiling))
    }

    /// The value for a handle; the caller gives up one reference.
    fn enter(raw: Handle, context: &Context, profiling: bool) -> Self {
        let value = Arc::new(Inner {
            raw,
            context: context.clone(),
            profiling,
            enqueued: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            deferred: Deferred::with_heir(context.deferred()),
        });
        Self::of(LIVE.enter(raw, value))
    }

    /// The value for a queue that someone else created. It is retained, once for all its uses.
    ///
    /// # Safety
    ///
    /// `raw` is a live in-order queue of `context` and its device.
    pub(crate) unsafe fn adopt(context: &Context, raw: cl_command_queue, profiling: bool) -> Result<Self> {
        let raw = Handle(raw);
        if let Some(known) = LIVE.find(raw) {
            return Ok(Self::of(known));
        }
        slot!(context.api(), clReleaseCommandQueue)?;
        let retain = slot!(context.api(), clRetainCommandQueue)?;
        // SAFETY: the caller's promise.
        check(unsafe { retain(raw.0) }, || "clRetainCommandQueue".to_owned())?;
        Ok(Self::enter(raw, context, profiling))
    }

    /// A reference that does not keep the queue alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakQueue {
        WeakQueue(Arc::downgrade(&self.inner))
    }

    /// Waits until every command enqueued so far has ended.
    ///
    /// # Errors
    ///
    /// The error from `clFinish`, or [`Error::Deferred`] with the errors that releases in a `Drop`
    /// could not return. Each [lease](crate::QueueLease) gets only its own.
    #[doc(alias = "clFinish")]
    pub fn finish(&self) -> Result<()> {
        self.drain()?;
        let deferred = self.deferred.take();
        if deferred.is_empty() {
            return Ok(());
        }
        Err(Error::Deferred(deferred))
    }

    /// As [`finish`](Self::finish), but leaves deferred errors for the caller of that one.
    ///
    /// # Errors
    ///
    /// The error from `clFinish`.
    pub fn drain(&self) -> Result<()> {
        let finish = slot!(self.inner.context.api(), clFinish)?;
        let before = self.enqueued();
        // SAFETY: the queue is alive.
        check(unsafe { finish(self.raw()) }, || "clFinish".to_owned())?;
        self.context().note_wait();
        self.mark_ended(before);
        Ok(())
    }

    /// Submits every command enqueued so far to the device.
    ///
    /// # Errors
    ///
    /// An error from `clFlush`.
    #[doc(alias = "clFlush")]
    pub fn flush(&self) -> Result<()> {
        let flush = slot!(self.inner.context.api(), clFlush)?;
        // SAFETY: the queue is alive.
        check(unsafe { flush(self.raw()) }, || "clFlush".to_owned())
    }

    /// The queue's handle, valid for as long as a clone of this value lives.
    ///
    /// Buffers do not know of commands enqueued through it: see [`SvmBuffer::note_use`](crate::SvmBuffer::note_use).
    #[must_use]
    pub fn raw(&self) -> cl_command_queue {
        self.inner.raw.0
    }

    /// The queue's context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Whether the queue's events carry times.
    #[must_use]
    pub fn is_profiling(&self) -> bool {
        self.inner.profiling
    }

    /// The number of the last command that is certainly enqueued.
    pub(crate) fn enqueued(&self) -> u64 {
        self.inner.enqueued.load(Ordering::SeqCst)
    }

    /// Takes the number of a command that was just enqueued.
    ///
    /// It must come after the driver's call: a number taken before could be counted as ended by a
    /// `finish` that runs between the two.
    pub(crate) fn note_enqueued(&self) -> u64 {
        self.inner.enqueued.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Notes that all commands up to `number` have ended.
    pub(crate) fn mark_ended(&self, number: u64) {
        self.inner.ended.fetch_max(number, Ordering::SeqCst);
    }

    /// Whether the command `number` is known to have ended.
    pub(crate) fn has_ended(&self, number: u64) -> bool {
        self.inner.ended.load(Ordering::SeqCst) >= number
    }

    /// Keeps the error of a `Drop` until the next [`finish`](Self::finish).
    pub(crate) fn defer(&self, error: Error) {
        self.deferred.push(error);
    }

    /// The same queue for a separate holder, whose errors go to `heir` when it [leaves](Self::leave).
    pub(crate) fn lend(&self, heir: &Arc<Deferred>) -> Self {
        Self {
            inner: self.inner.clone(),
            deferred: Deferred::with_heir(heir),
        }
    }

    /// The same queue for holders without a lease, after this holder has gone.
    pub(crate) fn leave(&self) -> Self {
        self.deferred.leave();
        Self::of(self.inner.clone())
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.inner.raw == other.inner.raw
    }
}

impl Eq for Queue {}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("raw", &self.inner.raw.0)
            .field("enqueued", &self.enqueued())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakQueue").field(&self.upgrade()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        LIVE.leave(self.raw, self);
        if let Some(release) = self.context.api().clReleaseCommandQueue {
            // SAFETY: this is the one reference that the creation or the retain gave. OpenCL keeps the queue
            // until its commands have ended.
            unsafe { release(self.raw.0) };
        }
    }
}
