//! Order between streams: marks in one, and waits for them in another.

use super::Stream;
use crate::call::call;
use crate::{Event, Result};

impl Event {
    /// Moves the mark to the present end of `stream`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) if the stream belongs to another device, or the HIP error.
    /// [`Error::NotSupported`](crate::Error::NotSupported) inside [`Stream::capture`].
    #[doc(alias = "hipEventRecord")]
    pub fn record_on(&self, stream: &Stream) -> Result<()> {
        stream.not_recording("recording an event")?;
        self.record_at_once(stream)
    }

    /// Like [`Event::record_on`]; marks the stream itself even while its work is being recorded.
    fn record_at_once(&self, stream: &Stream) -> Result<()> {
        self.device()
            .check_same(stream.device(), "Event::record_on", "stream")?;
        self.device().make_current()?;
        // SAFETY: both handles are alive and of one device.
        unsafe {
            call!(
                self.device().runtime(),
                hipEventRecord(self.raw(), stream.raw_uncaptured()?),
                "hipEventRecord({:?})",
                stream.raw()
            )
        }
    }
}

impl Stream {
    /// Marks this point of the stream with a new event that can measure time.
    ///
    /// # Errors
    ///
    /// HIP could not create or record the event. [`Error::NotSupported`](crate::Error::NotSupported) inside
    /// [`capture`](Self::capture).
    pub fn record(&self) -> Result<Event> {
        let event = self.device().event()?;
        event.record_on(self)?;
        Ok(event)
    }

    /// Work queued here from now on starts after what `event` marks now. The host does not wait.
    ///
    /// An event that was never recorded marks nothing, and a later record does not change this wait.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) if the event belongs to another runtime, or HIP refused the
    /// wait. [`Error::NotSupported`](crate::Error::NotSupported) inside [`capture`](Self::capture).
    #[doc(alias = "hipStreamWaitEvent")]
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.not_recording("waiting for an event")?;
        self.wait_at_once(event)
    }

    /// Like [`Stream::wait`]; the stream itself waits even while its work is being recorded.
    fn wait_at_once(&self, event: &Event) -> Result<()> {
        if !self.device().runtime().same(event.device().runtime()) {
            return self.device().check_same(event.device(), "Stream::wait", "event");
        }
        self.device().make_current()?;
        // SAFETY: both handles are alive and of this runtime; HIP lets the event belong to another of its devices.
        unsafe {
            call!(
                self.device().runtime(),
                hipStreamWaitEvent(self.raw_uncaptured()?, event.raw(), 0),
                "hipStreamWaitEvent()"
            )
        }
    }

    /// Work queued here from now on starts after the work that is queued on `other` now. The host does not wait.
    ///
    /// Inside [`capture`](Self::capture) this stream itself waits: ordering between streams is not recorded.
    ///
    /// # Errors
    ///
    /// As for [`Stream::wait`], if `other` is the captured stream.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        if self == other {
            return Ok(());
        }
        other.not_recording("ordering another stream's work after it")?;
        // Held until the wait is queued: another thread's record in between would make this one wait for more than it
        // has to.
        let mut fence = other.core.fence.lock();
        let event = match &mut *fence {
            Some(event) => event,
            none => none.insert(Event::create(other.device(), hip_sys::hipEventDisableTiming)?),
        };
        event.record_at_once(other)?;
        self.wait_at_once(event)
    }
}
