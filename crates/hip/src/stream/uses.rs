use parking_lot::Mutex;

use super::Stream;
use crate::Result;

/// Which streams may still be using a piece of memory.
///
/// A use is noted when a slice is handed out, not when the slice goes away, so a leaked slice changes nothing. That is
/// enough, because a slice borrows the memory: when a stream is about to *write*, no slice of another stream is alive
/// any more, so everything that could touch the memory is already queued, and an event recorded now comes after it.
#[derive(Default)]
pub(crate) struct Uses {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    writer: Option<Stream>,
    /// Streams that read since the last write; each of them waited for that write. Those without a holder leave once
    /// they are idle.
    readers: Vec<Stream>,
}

impl Uses {
    /// Lets `stream` read after the last write. Slices of other readers may be alive.
    #[inline]
    pub(crate) fn read_on(&self, stream: &Stream) -> Result<()> {
        let mut state = self.state.lock();
        if state.readers.contains(stream) {
            return Ok(());
        }
        if let Some(writer) = &state.writer {
            stream.wait_for(writer)?;
        }
        // Memory that is written once may have any number of readers.
        state.readers.retain(|other| !other.is_over());
        state.readers.push(stream.kept());
        Ok(())
    }

    /// Lets `stream` write after all that was queued. `&mut`: no slice is alive.
    #[inline]
    pub(crate) fn write_on(&mut self, stream: &Stream) -> Result<()> {
        let state = self.state.get_mut();
        if state.readers.is_empty() && state.writer.as_ref() == Some(stream) {
            return Ok(());
        }
        // A reader waited for the writer, so waiting for the readers is waiting for both.
        let before = if state.readers.is_empty() {
            state.writer.as_slice()
        } else {
            &state.readers
        };
        for other in before {
            stream.wait_for(other)?;
        }
        state.readers.clear();
        state.writer = Some(stream.kept());
        Ok(())
    }

    /// Uses of memory that was handed out in order of `stream`.
    pub(crate) fn since(stream: &Stream) -> Self {
        Self {
            state: Mutex::new(State {
                writer: Some(stream.kept()),
                readers: Vec::new(),
            }),
        }
    }

    /// Lets `stream` come after everything that was queued, and keeps the record: should the caller fail, nothing is
    /// lost.
    pub(crate) fn wait_on(&mut self, stream: &Stream) -> Result<()> {
        let state = self.state.get_mut();
        for other in state.readers.iter().chain(&state.writer) {
            stream.wait_for(other)?;
        }
        Ok(())
    }

    /// Blocks until the last write has completed. Slices of readers may be alive.
    pub(crate) fn wait_for_writer(&self) -> Result<()> {
        // The lock is not held while waiting. No new writer can appear meanwhile: that needs `&mut self`.
        let writer = self.state.lock().writer.as_ref().map(Stream::kept);
        if let Some(writer) = writer {
            writer.synchronize()?;
            self.state.lock().writer = None;
        }
        Ok(())
    }

    /// Blocks until nothing uses the memory.
    pub(crate) fn wait_for_all(&mut self) -> Result<()> {
        let state = self.state.get_mut();
        for stream in state.readers.iter().chain(&state.writer) {
            stream.synchronize()?;
        }
        *state = State::default();
        Ok(())
    }

    /// Nothing uses the memory any more: a stream that waited for all others was waited for.
    pub(crate) fn forget(&mut self) {
        *self.state.get_mut() = State::default();
    }

    /// For destructors: waits for all streams, and tells whether it is certain that nothing uses the memory any more.
    pub(crate) fn settle(&mut self) -> bool {
        let state = std::mem::take(self.state.get_mut());
        let mut settled = true;
        for stream in state.readers.iter().chain(&state.writer) {
            settled &= stream.settle();
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Runtime};

    fn device() -> Device {
        let host = platform::select_named(Some("host")).unwrap();
        let hip = std::sync::Arc::new(*host.tables().hip);
        // SAFETY: one platform's functions.
        let runtime = unsafe { Runtime::from_tables(hip, None) };
        runtime.unwrap().device(0).unwrap()
    }

    #[test]
    fn readers_without_a_holder_leave_once_they_are_idle() {
        let (device, uses) = (device(), Uses::default());
        let (held, busy) = (device.stream().unwrap(), device.stream().unwrap());
        let (open, gate) = std::sync::mpsc::channel::<()>();
        busy.host_function(move || {
            let _ = gate.recv();
        })
        .unwrap();
        uses.read_on(&held).unwrap();
        uses.read_on(&busy).unwrap();
        drop(busy);
        for _ in 0..100 {
            uses.read_on(&device.stream().unwrap()).unwrap();
        }
        assert_eq!(uses.state.lock().readers.len(), 3, "and the last one");
        assert!(uses.state.lock().readers.contains(&held));
        drop(open);
    }

    #[test]
    fn memory_in_order_of_a_stream_is_used_after_it() {
        let device = device();
        let (before, after) = (device.stream().unwrap(), device.stream().unwrap());
        let (open, gate) = std::sync::mpsc::channel::<()>();
        before
            .host_function(move || {
                let _ = gate.recv();
            })
            .unwrap();
        Uses::since(&before).read_on(&after).unwrap();
        assert!(!after.is_idle().unwrap());
        drop(open);
        after.synchronize().unwrap();
    }

    #[test]
    fn memory_stays_if_it_is_uncertain_of_one_stream_whether_it_has_ended() {
        use hip_sys::{hipError_t, hipStream_t};
        static LOST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        unsafe extern "C" fn lost(stream: hipStream_t) -> hipError_t {
            match stream.addr() == LOST.load(std::sync::atomic::Ordering::Relaxed) {
                true => hipError_t::hipErrorUnknown,
                false => hipError_t::hipSuccess,
            }
        }
        let host = platform::select_named(Some("host")).unwrap();
        let mut hip = *host.tables().hip;
        hip.hipStreamSynchronize = Some(lost);
        hip.hipStreamQuery = Some(lost);
        // SAFETY: one platform's functions, and two that give no work.
        let runtime = unsafe { Runtime::from_tables(std::sync::Arc::new(hip), None) }.unwrap();
        let device = runtime.device(0).unwrap();
        let streams = [(); 3].map(|()| device.stream().unwrap());
        for stream in &streams {
            let mut uses = Uses::default();
            streams.iter().for_each(|stream| uses.read_on(stream).unwrap());
            LOST.store(stream.raw().addr(), std::sync::atomic::Ordering::Relaxed);
            assert!(!uses.settle());
            LOST.store(0, std::sync::atomic::Ordering::Relaxed);
        }
        assert!(Uses::since(&streams[0]).settle());
        assert_eq!(runtime.take_deferred_errors().len(), streams.len());
    }
}
