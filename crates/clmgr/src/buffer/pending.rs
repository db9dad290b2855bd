//! Transfers that own their host memory.

use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;

use crate::error::{Error, Result};
use crate::event::Event;
use crate::handle::Handle;

/// A vector whose memory a driver uses, so nothing here may touch it.
pub(super) struct HostMemory<T> {
    start: Handle,
    len: usize,
    capacity: usize,
    element: std::marker::PhantomData<T>,
}

impl<T> HostMemory<T> {
    pub fn new(vector: Vec<T>) -> Self {
        let mut vector = ManuallyDrop::new(vector);
        Self {
            start: Handle(vector.as_mut_ptr().cast()),
            len: vector.len(),
            capacity: vector.capacity(),
            element: std::marker::PhantomData,
        }
    }

    pub fn as_ptr(&self) -> *mut c_void {
        self.start.0
    }

    /// The vector again. The caller knows that the driver no longer uses it.
    fn take(self) -> Vec<T> {
        let parts = ManuallyDrop::new(self);
        // SAFETY: these are the parts of a vector that was forgotten, and they are given once.
        unsafe { Vec::from_raw_parts(parts.start.0.cast(), parts.len, parts.capacity) }
    }
}

impl<T> Drop for HostMemory<T> {
    fn drop(&mut self) {
        // SAFETY: as in `take`; the owner drops this only if the driver no longer uses it.
        drop(unsafe { Vec::from_raw_parts(self.start.0.cast::<T>(), self.len, self.capacity) });
    }
}

/// An enqueued read or write, which owns its host memory until the command has ended.
///
/// Dropping it waits. Forgetting it leaks only the memory.
#[must_use = "a transfer that is dropped at once waits for its end"]
pub struct Pending<T> {
    event: Event,
    memory: ManuallyDrop<HostMemory<T>>,
}

impl<T> Pending<T> {
    /// Submits the command to the device, so a query eventually finds it ended.
    pub(super) fn flushed(event: Event, memory: HostMemory<T>) -> Result<Self> {
        let pending = Self {
            event,
            memory: ManuallyDrop::new(memory),
        };
        // If this fails, the drop of `pending` waits for the command.
        pending.event.flush()?;
        Ok(pending)
    }

    /// Waits for the end and returns the memory: what was read, or what was written.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if the command ended with an error; an error from `clWaitForEvents`, and
    /// then the memory is lost, since the device may still use it.
    pub fn wait(self) -> Result<Vec<T>> {
        let mut pending = ManuallyDrop::new(self);
        let waited = pending.event.wait();
        // SAFETY: `pending` is not dropped, so both parts are taken once.
        let (event, memory) = unsafe {
            (
                std::ptr::read(&raw const pending.event),
                ManuallyDrop::take(&mut pending.memory),
            )
        };
        drop(event);
        match waited {
            Ok(()) => Ok(memory.take()),
            Err(error) => {
                if !has_ended(&error) {
                    std::mem::forget(memory);
                }
                Err(error)
            }
        }
    }

    /// Whether the command has ended. It does not wait.
    ///
    /// # Errors
    ///
    /// As [`Event::is_complete`].
    pub fn is_complete(&self) -> Result<bool> {
        self.event.is_complete()
    }

    /// The command's event.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }
}

/// Whether a command whose wait failed like this no longer runs.
fn has_ended(error: &Error) -> bool {
    matches!(error, Error::Command { .. })
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("len", &self.memory.len)
            .field("event", &self.event)
            .finish()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let ended = match self.event.wait() {
            Ok(()) => true,
            Err(error) => {
                let ended = has_ended(&error);
                self.event.defer(error);
                ended
            }
        };
        if ended {
            // SAFETY: the memory is dropped once, and the device no longer uses it.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
