//! A copy in progress.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::foreign::SourceRef;
use super::staging::Staging;
use crate::error::{Error, Result};
use crate::event::Event;

/// A copy that a [`BufferBridge`](super::BufferBridge) has enqueued. Dropping it waits; forgetting it
/// leaks the staging memory, or the memory of the source, and nothing else.
#[must_use = "a copy that is dropped at once waits for its end"]
pub struct BridgeCopy {
    memory: ManuallyDrop<Option<Memory>>,
    events: Vec<Event>,
}

/// What must outlive the copy.
#[allow(dead_code, reason = "kept for its drop")]
enum Memory {
    Staging(Arc<Staging>),
    Source(SourceRef),
}

impl BridgeCopy {
    /// Of memory that OpenCL keeps until the event's command has ended.
    pub(super) fn within(event: Event) -> Self {
        Self::with(None, vec![event])
    }

    pub(super) fn staged(staging: Arc<Staging>) -> Self {
        Self::with(Some(Memory::Staging(staging)), Vec::new())
    }

    pub(super) fn across(source: SourceRef) -> Self {
        Self::with(Some(Memory::Source(source)), Vec::new())
    }

    fn with(memory: Option<Memory>, events: Vec<Event>) -> Self {
        Self {
            memory: ManuallyDrop::new(memory),
            events,
        }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if a piece failed, and then the target's contents are unspecified; an error from
    /// `clWaitForEvents`.
    pub fn wait(mut self) -> Result<()> {
        self.finish()
    }

    /// Whether the copy has ended. It does not wait.
    ///
    /// # Errors
    ///
    /// As [`Event::is_complete`].
    pub fn is_complete(&self) -> Result<bool> {
        for event in &self.events {
            if !event.is_complete()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for every event, also after one that failed, and returns the first failure.
    fn finish(&mut self) -> Result<()> {
        let mut first = Ok(());
        let mut ended = true;
        for event in self.events.drain(..) {
            if let Err(error) = event.wait() {
                ended &= matches!(error, Error::Command { .. });
                first = first.and(Err(error));
            }
        }
        // If a wait failed, the device may still use the memory: then it is never freed.
        if let Some(memory) = self.memory.take()
            && !ended
        {
            std::mem::forget(memory);
        }
        first
    }
}

impl fmt::Debug for BridgeCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeCopy")
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}

impl Drop for BridgeCopy {
    fn drop(&mut self) {
        let last = self.events.last().cloned();
        if let (Err(error), Some(event)) = (self.finish(), last) {
            event.defer(error);
        }
    }
}
