use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::Stream;
use crate::{Event, Result};

/// An event that can be awaited: ready when the work queued before it is done. Any executor will do.
///
/// Dropping or leaking it has no effect: it borrows no memory, and the queued work stays queued.
///
/// The waker is called from a HIP thread that must not use HIP. Wakers of executors only queue their task, which is
/// fine. If the device is lost, HIP may never call, and the future stays pending; [`Event::synchronize`] of
/// [`event`](Self::event) still returns then.
///
/// ```
/// # use std::sync::Arc;
/// # use std::task::{Context, Poll, Waker};
/// # // SAFETY: the table comes from one platform.
/// # let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }?;
/// # let device = runtime.device(0)?;
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark { fn wake(self: Arc<Self>) { self.0.unpark() } }
/// #     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
/// #             Poll::Ready(output) => return output,
/// #             Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// async fn filled(device: &hip::Device) -> hip::Result<u32> {
///     let stream = device.stream()?;
///     let mut memory = device.alloc_pinned::<u32>(1)?;
///     memory.host_mut()?[0] = 7;
///     memory.on_mut(&stream)?.fill_zero()?;
///     stream.completion()?.await?;
///     Ok(memory.host()?[0]) // does not block any more
/// }
/// assert_eq!(block_on(filled(&device))?, 0);
/// # Ok::<(), hip::Error>(())
/// ```
///
/// Awaiting consumes it, and the memory concerned stays borrowed for as long as a slice of it is needed:
///
/// ```compile_fail,E0382
/// async fn twice(done: hip::Completion) -> hip::Result<()> {
///     done.await?;
///     done.await
/// }
/// ```
///
/// ```compile_fail,E0505
/// async fn gone(stream: &hip::Stream, mut memory: hip::PinnedBuffer<u32>) -> hip::Result<()> {
///     let mut slice = memory.on_mut(stream)?;
///     slice.fill_zero()?;
///     let done = stream.completion()?;
///     drop(memory);
///     done.await?;
///     slice.fill_zero()
/// }
/// ```
#[must_use = "a future does nothing unless it is awaited"]
pub struct Completion {
    event: Event,
    notice: Arc<Mutex<Notice>>,
}

#[derive(Default)]
struct Notice {
    done: bool,
    waker: Option<Waker>,
}

impl Stream {
    /// A future of the work queued so far.
    ///
    /// This call asks HIP, not the first poll of the future, so work queued in between does not delay it.
    ///
    /// # Errors
    ///
    /// HIP could not create or record the event, or refused the host function.
    #[doc(alias("hipEventRecord", "hipLaunchHostFunc"))]
    pub fn completion(&self) -> Result<Completion> {
        let event = Event::create(self.device(), hip_sys::hipEventDisableTiming)?;
        event.record_on(self)?;
        let notice = Arc::<Mutex<Notice>>::default();
        let told = notice.clone();
        self.host_function(move || {
            let waker = {
                let mut notice = told.lock();
                notice.done = true;
                notice.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        })?;
        Ok(Completion { event, notice })
    }
}

impl Completion {
    /// The event that is awaited.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }
}

impl Future for Completion {
    /// The error of the work, if it failed.
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        {
            let mut notice = self.notice.lock();
            if !notice.done {
                match &mut notice.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                return Poll::Pending;
            }
        }
        // The host function came after the event, so this does not block; it brings the error.
        Poll::Ready(self.event.synchronize())
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("event", &self.event)
            .field("done", &self.notice.lock().done)
            .finish()
    }
}
