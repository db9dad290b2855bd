//! Copies between contexts.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use parking_lot::Mutex;

use crate::buffer::{MemMut, MemRef, Object, SvmBuffer};
use crate::context::Context;
use crate::device::{DeviceKind, SvmCapabilities};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::Queue;

/// The size of a piece, large enough for the full speed of a bus.
const PIECE_BYTES: usize = 8 << 20;
/// One piece is read while the other is written.
const PIECES: usize = 2;

/// How a [`BufferBridge`] moves the bytes of buffer objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BridgeRoute {
    /// Both queues are of one context: one copy on the device.
    Direct,
    /// OpenCL has no copy of a buffer object between contexts: pieces go through pinned host
    /// memory, the next being read while the last is written.
    Staging,
}

impl fmt::Display for BridgeRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Staging => "staging",
        })
    }
}

/// Copies buffers from the context of one queue to that of another.
///
/// What is enqueued on the first queue before a copy comes before it, and what is enqueued on the
/// second queue after it comes after it.
pub struct BufferBridge {
    from: Queue,
    to: Queue,
    staging: Option<Arc<Staging>>,
    /// Held while a copy is enqueued, so that the pieces of two copies do not mix.
    enqueuing: Mutex<()>,
    svm: OnceLock<std::result::Result<(), String>>,
}

/// Pinned memory of the source's context, mapped for as long as it lives.
struct Staging {
    pieces: [Piece; PIECES],
    bytes: usize,
}

struct Piece {
    start: Handle,
    /// Its drop ends the map and releases the memory.
    _memory: Object<u8>,
}

impl Staging {
    fn new(queue: &Queue, bytes: usize) -> Result<Self> {
        let piece = || -> Result<Piece> {
            let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_ALLOC_HOST_PTR;
            // SAFETY: there is no host memory.
            let memory =
                unsafe { Object::create(queue.context(), flags, bytes, std::ptr::null_mut()) }?;
            let flags = opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE;
            let start = memory.map_raw(queue, flags, true)?;
            Ok(Piece {
                start,
                _memory: memory,
            })
        };
        Ok(Self {
            pieces: [piece()?, piece()?],
            bytes,
        })
    }
}

impl BufferBridge {
    /// A bridge from the context of `from` to the context of `to`.
    ///
    /// # Errors
    ///
    /// What the allocation and map of the staging memory answer.
    pub fn new(from: &Queue, to: &Queue) -> Result<Self> {
        Self::with_piece(from, to, PIECE_BYTES)
    }

    /// As [`new`](Self::new), with two pieces of staging memory of this size.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), or [`Error::Zero`].
    pub fn with_piece(from: &Queue, to: &Queue, bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::Zero {
                what: "a bridge's piece",
            });
        }
        let staging = (from.context() != to.context())
            .then(|| Staging::new(from, bytes).map(Arc::new))
            .transpose()?;
        Ok(Self {
            from: from.clone(),
            to: to.clone(),
            staging,
            enqueuing: Mutex::new(()),
            svm: OnceLock::new(),
        })
    }

    /// How the bytes of buffer objects go.
    #[must_use]
    pub fn route(&self) -> BridgeRoute {
        match self.staging {
            None => BridgeRoute::Direct,
            Some(_) => BridgeRoute::Staging,
        }
    }

    /// Copies `count` elements from `source_at` in `source` to `target_at` in `target`, and waits.
    ///
    /// # Errors
    ///
    /// As [`copy_async`](Self::copy_async) and [`BridgeCopy::wait`].
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        source: impl Into<MemRef<'a, T>>,
        source_at: usize,
        target: impl Into<MemMut<'b, T>>,
        target_at: usize,
        count: usize,
    ) -> Result<()> {
        self.copy_async(source, source_at, target, target_at, count)?
            .wait()
    }

    /// Enqueues the copy on both queues. No thread of the host waits for a piece: the end of a read
    /// lets the write begin by a callback. Copies of one bridge follow each other.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::ContextMismatch`] for a buffer of neither context,
    /// [`Error::Access`] for a buffer that is closed to the host, or what the driver answers. Then
    /// the pieces that were enqueued have ended, and the target's contents are unspecified.
    pub fn copy_async<'a, 'b, T: Pod>(
        &self,
        source: impl Into<MemRef<'a, T>>,
        source_at: usize,
        target: impl Into<MemMut<'b, T>>,
        target_at: usize,
        count: usize,
    ) -> Result<BridgeCopy> {
        let source = source.into().0;
        let target = target.into().0;
        let Some(staging) = &self.staging else {
            // The second queue's order is the one that later commands see.
            self.to.wait_for_queue(&self.from)?;
            let event = target.copy_from(&self.to, target_at, MemRef(source), source_at, count)?;
            event.flush()?;
            return Ok(BridgeCopy::new(None, vec![event]));
        };
        source.host_range(source_at, count, false)?;
        target.host_range(target_at, count, true)?;
        source.settle(&self.from, false)?;
        target.settle(&self.to, true)?;
        let step = staging.bytes / size_of::<T>();
        if step == 0 {
            return Err(Error::TooLarge {
                what: "an element that goes over a bridge",
                got: format!("{} bytes", size_of::<T>()),
                limit: staging.bytes as u64,
            });
        }
        let _alone = self.enqueuing.lock();
        // The staging memory may still be written from by an earlier copy.
        self.from.wait_for_queue(&self.to)?;
        let mut copy = BridgeCopy::new(Some(staging.clone()), Vec::new());
        let mut written: [Option<Event>; PIECES] = [const { None }; PIECES];
        let mut done = 0;
        while done < count {
            let len = step.min(count - done);
            let slot = (done / step) % PIECES;
            let place = staging.pieces[slot].start.0;
            if let Some(earlier) = written[slot].take() {
                self.from.wait_for_any(&earlier)?;
            }
            // SAFETY: the piece holds `len` elements and is kept until every event has ended; the
            // write that last used it has ended before.
            let read = unsafe { source.read_into(&self.from, source_at + done, len, place) }?;
            copy.events.push(read.clone());
            self.to.wait_for_any(&read)?;
            // SAFETY: as for the read, which ends before.
            let write = unsafe { target.write_from(&self.to, target_at + done, len, place) }?;
            copy.events.push(write.clone());
            written[slot] = Some(write);
            done += len;
        }
        self.from.flush()?;
        self.to.flush()?;
        Ok(copy)
    }

    /// Copies shared virtual memory by its addresses, without staging, and waits.
    ///
    /// It is tried where a driver can use an address of another context: within one context, and
    /// between contexts of one processor, after a pattern went that way. On a GPU, a driver takes an
    /// address that it does not know for the host's (clr: rocclr/device/rocm/rocvirtual.cpp), which
    /// may crash, so that it is not tried there.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] with the reason where it is not possible: then
    /// [`copy`](Self::copy) a view of the source into a buffer object. [`Error::LengthMismatch`], [`Error::ContextMismatch`], or what
    /// `clEnqueueSVMMemcpy` answers.
    pub fn try_copy_svm<T: Pod>(
        &self,
        source: &SvmBuffer<T>,
        target: &mut SvmBuffer<T>,
    ) -> Result<()> {
        if source.context() != self.from.context() || target.context() != self.to.context() {
            return Err(Error::ContextMismatch {
                what: "a buffer of the copy",
            });
        }
        let probed = self.svm.get_or_init(|| self.probe_svm());
        if let Err(reason) = probed {
            return Err(Error::NotSupported {
                what: "a copy of shared virtual memory between contexts".to_owned(),
                device: self.to.context().device().name().to_owned(),
                reason: reason.clone(),
            });
        }
        source.settle_all(&self.from)?;
        target.copy_from_address(&self.to, source.as_ptr(), source.len())
    }

    fn probe_svm(&self) -> std::result::Result<(), String> {
        let (from, to) = (self.from.context(), self.to.context());
        if from == to {
            return Ok(());
        }
        let on_host = |context: &Context| context.device().kind() == DeviceKind::Cpu;
        if from.device() != to.device() || !on_host(from) {
            return Err("the contexts are not both of one processor".to_owned());
        }
        if !to.device().svm().contains(SvmCapabilities::COARSE) {
            return Err("it has no shared virtual memory".to_owned());
        }
        let carried = || -> Result<bool> {
            let pattern: Vec<u32> = (0..64u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
            let mut there = SvmBuffer::coarse(from, pattern.len())?;
            there.write(&self.from, &pattern)?;
            let mut here = SvmBuffer::coarse(to, pattern.len())?;
            here.copy_from_address(&self.to, there.as_ptr(), there.len())?;
            let mut got = vec![0; pattern.len()];
            here.read(&self.to, &mut got)?;
            Ok(got == pattern)
        };
        match carried() {
            Ok(true) => Ok(()),
            Ok(false) => Err("a pattern did not arrive".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Debug for BufferBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferBridge")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("route", &self.route())
            .finish_non_exhaustive()
    }
}

/// A copy that a [`BufferBridge`] has enqueued. Dropping it waits; forgetting it leaks the staging
/// memory and nothing else.
#[must_use = "a copy that is dropped at once waits for its end"]
pub struct BridgeCopy {
    staging: ManuallyDrop<Option<Arc<Staging>>>,
    events: Vec<Event>,
}

impl BridgeCopy {
    fn new(staging: Option<Arc<Staging>>, events: Vec<Event>) -> Self {
        Self {
            staging: ManuallyDrop::new(staging),
            events,
        }
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// [`Error::Command`] if a piece failed, and then the target's contents are unspecified; what
    /// `clWaitForEvents` answers.
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

    /// Waits for every event, also after one that failed, and gives the first failure.
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
        if let Some(staging) = self.staging.take()
            && !ended
        {
            std::mem::forget(staging);
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
