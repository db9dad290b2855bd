use std::ptr;

use hip_sys::{hipStream_t, hipStreamCaptureMode};

use super::Graph;
use crate::call::call;
use crate::stream::Recording;
use crate::{Device, Error, Result, Stream};

impl Stream {
    /// Captures what `work` queues on this stream, instead of running it.
    ///
    /// A HIP stream that is created for the capture, and destroyed after it, records the work. So the capture contains
    /// only what the calling thread queues inside `work`. What other threads queue on this stream meanwhile runs as
    /// usual, work queued earlier continues, and a failed capture leaves a usable stream. (On ROCm, invalidating a
    /// stream's own capture makes the stream unusable.)
    ///
    /// Only work is recorded. Taking a slice inside `work` makes this stream itself wait for the memory's other users,
    /// so the graph contains no ordering between streams, and other streams cannot join the capture. What cannot be
    /// recorded is refused with [`Error::NotSupported`] before any HIP call:
    ///
    /// - waiting for this stream, and therefore copies from and to host slices: copy through
    ///   [`PinnedBuffer`](crate::PinnedBuffer);
    /// - events, flags, semaphores, and work on other streams that has to come after this stream's work;
    /// - host functions and stream-ordered allocation, because they happen once and a graph runs many times.
    ///
    /// A library that holds this stream's handle does not know about the capture, and its work runs immediately: see
    /// [`capture_told`](Self::capture_told).
    ///
    /// ```no_run
    /// # fn f(stream: &hip::Stream, buffer: &mut hip::DeviceBuffer<f32>) -> hip::Result<()> {
    /// let graph = stream.capture(|stream| buffer.on_mut(stream)?.fill_zero())?.instantiate()?;
    /// for _ in 0..3 {
    ///     let slice = buffer.on_mut(stream)?;
    ///     // SAFETY: the graph fills this one buffer.
    ///     unsafe { graph.launch(stream, &[&slice])? };
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error from `work`, or the HIP error if the capture was invalidated; nothing is kept. Capturing this stream
    /// inside `work` is an error too.
    #[doc(alias("hipStreamBeginCapture", "hipStreamEndCapture"))]
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        self.capture_told(|_| Ok(()), work)
    }

    /// Like [`Stream::capture`], for a library such as rocBLAS that receives its stream once and then works on it.
    ///
    /// `tell` is called with the recording stream's handle before the recording starts, and always with
    /// [`raw`](Self::raw) after it stops. The first handle is invalid once this function returns.
    ///
    /// # Errors
    ///
    /// As for [`Stream::capture`], or the error from `tell`.
    pub fn capture_told<E: From<Error>>(
        &self,
        tell: impl Fn(hipStream_t) -> Result<(), E>,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        self.not_capturing("a capture inside another capture of the same stream")?;
        let recorder = Recorder::create(self.device())?;
        tell(recorder.raw)?;
        let redirected = Redirected {
            tell: &tell,
            raw: self.raw(),
        };
        recorder.begin()?;
        let mut recording = Recording::new(self, recorder.raw);
        let running = Running { recorder: &recorder };
        let outcome = recording.during(|| work(self));
        let graph = running.end();
        let restored = redirected.restore();
        outcome.and(graph.map_err(E::from)).and_then(|graph| {
            restored?;
            Ok(graph.keeping(recording.take_used()))
        })
    }
}

/// A HIP stream that only records. It never runs work, so there is nothing to wait for.
struct Recorder<'a> {
    device: &'a Device,
    raw: hipStream_t,
}

impl<'a> Recorder<'a> {
    fn create(device: &'a Device) -> Result<Self> {
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the flag is a HIP constant.
        unsafe {
            call!(
                device.runtime(),
                hipStreamCreateWithFlags(&mut raw, hip_sys::hipStreamNonBlocking),
                "hipStreamCreateWithFlags(hipStreamNonBlocking, device {}) for a capture",
                device.ordinal()
            )?;
        }
        Ok(Self { device, raw })
    }

    fn begin(&self) -> Result<()> {
        // The stricter modes invalidate a capture on calls, by this thread or by any, that might wait for the capturing
        // stream. None can: no other code has this stream.
        let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
        // SAFETY: the stream is alive, and not the null stream.
        unsafe {
            call!(
                self.device.runtime(),
                hipStreamBeginCapture(self.raw, mode),
                "hipStreamBeginCapture({mode:?})"
            )
        }
    }

    fn end(&self) -> Result<Graph> {
        self.device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; all callers began the capture.
        unsafe {
            call!(
                self.device.runtime(),
                hipStreamEndCapture(self.raw, &mut raw),
                "hipStreamEndCapture()"
            )?;
        }
        if raw.is_null() {
            return Err(Error::Answer {
                call: "hipStreamEndCapture",
                answer: "null".to_owned(),
                expected: "a graph",
            });
        }
        // SAFETY: just captured, and not shared.
        Ok(unsafe { Graph::from_raw(self.device, raw) })
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        let destroyed = self.device.make_current().and_then(|()| {
            // SAFETY: the handle is alive, and this is its last use. Destroying it also discards a capture that could
            // not be ended.
            unsafe {
                call!(
                    self.device.runtime(),
                    hipStreamDestroy(self.raw),
                    "hipStreamDestroy({:?}) after a capture",
                    self.raw
                )
            }
        });
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

/// A capture, which ends on drop, also on a panic.
struct Running<'a> {
    recorder: &'a Recorder<'a>,
}

impl Running<'_> {
    fn end(self) -> Result<Graph> {
        let graph = self.recorder.end();
        std::mem::forget(self);
        graph
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.recorder.end() {
            self.recorder.device.runtime().defer(error);
        }
    }
}

/// A library that works on the recording stream; drop restores its own stream.
struct Redirected<'a, E, F: Fn(hipStream_t) -> Result<(), E>> {
    tell: &'a F,
    raw: hipStream_t,
}

impl<E, F: Fn(hipStream_t) -> Result<(), E>> Redirected<'_, E, F> {
    fn restore(self) -> Result<(), E> {
        let result = (self.tell)(self.raw);
        std::mem::forget(self);
        result
    }
}

impl<E, F: Fn(hipStream_t) -> Result<(), E>> Drop for Redirected<'_, E, F> {
    fn drop(&mut self) {
        // Reaching this point means an error or a panic.
        let _ = (self.tell)(self.raw);
    }
}
