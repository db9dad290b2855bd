//! Copies between contexts.
//!
//! | file | what it holds |
//! |---|---|
//! | this one | [`BufferBridge`] and its choice of a way |
//! | `foreign.rs` | the direct way between contexts, and the trial that allows it |
//! | `staging.rs` | the way through host memory |
//! | `svm.rs` | shared virtual memory by its addresses |
//! | `copy.rs` | [`BridgeCopy`], a copy under way |

mod copy;
mod foreign;
mod staging;
mod svm;

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
pub use copy::BridgeCopy;
use foreign::Foreign;
use parking_lot::Mutex;
use staging::{PIECES, Staging};

use crate::buffer::{MemMut, MemRef, Object};
use crate::device::Verdict;
use crate::error::{Error, Result};
use crate::queue::Queue;

/// The size of a piece, large enough for the full speed of a bus.
const PIECE_BYTES: usize = 8 << 20;

/// How a [`BufferBridge`] moves the bytes of buffer objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BridgeRoute {
    /// Both queues are of one context: one copy on the device.
    Direct,
    /// A kernel of the target's context reads the buffer of the source's: one copy on the device.
    /// Only after a pattern went that way; PoCL is known to accept such a buffer. See [`BufferBridge::new`] for where
    /// it is tried.
    Foreign,
    /// Pieces go through pinned host memory, the next being read while the last is written.
    Staging,
}

impl fmt::Display for BridgeRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Foreign => "foreign",
            Self::Staging => "staging",
        })
    }
}

/// Copies buffers from the context of one queue to that of another.
///
/// Work enqueued on the first queue before a copy comes before it. Work enqueued after it comes after it on the second
/// queue, and after its reads on the first.
pub struct BufferBridge {
    from: Queue,
    to: Queue,
    way: Way,
    /// Held while a copy is enqueued, so the pieces of two copies do not mix.
    enqueuing: Mutex<()>,
    /// What is definitely known about copies by address.
    svm: Mutex<Option<Verdict>>,
}

enum Way {
    Direct,
    Foreign(Foreign),
    Staging {
        memory: Arc<Staging>,
        /// Why not a direct way.
        reason: String,
    },
}

impl BufferBridge {
    /// A bridge from the context of `from` to the context of `to`, by the best available way.
    ///
    /// Between two contexts of one device it tries whether a kernel of the one can read a buffer of the other, where
    /// the driver is known to refuse or survive that: on a processor, and on NVIDIA's. Elsewhere see
    /// [`with_trial`](Self::with_trial).
    ///
    /// | bridge | what its making costs, besides its staging memory |
    /// |---|---|
    /// | within a context, [`staged`](Self::staged), between devices, or where nothing is tried | nothing |
    /// | the first of a device | two contexts with a queue each, a small program compiled, two patterns of 64 KiB; until that has led to a verdict, each |
    /// | a later one, where the driver refuses | nothing |
    /// | each one, the first too, where the driver takes such buffers | the program compiled for the target's context, a queue in each, two patterns of 64 KiB |
    ///
    /// # Errors
    ///
    /// An error from the allocation or map of the staging memory.
    pub fn new(from: &Queue, to: &Queue) -> Result<Self> {
        Self::open(from, to, false)
    }

    /// As [`new`](Self::new), and tries a kernel on the other context's buffer whatever the driver.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// The driver refuses a kernel's argument of another context, or treats it like one of the kernel's own. OpenCL
    /// leaves open what another driver does; AMD's runtime ends the process if the card faults. Try it in a process
    /// that may end.
    pub unsafe fn with_trial(from: &Queue, to: &Queue) -> Result<Self> {
        Self::open(from, to, true)
    }

    fn open(from: &Queue, to: &Queue, anywhere: bool) -> Result<Self> {
        if from.context() == to.context() {
            return Ok(Self::by(from, to, Way::Direct));
        }
        match Foreign::open(from, to, anywhere) {
            Ok(kernels) => Ok(Self::by(from, to, Way::Foreign(kernels))),
            Err(reason) => Self::by_staging(from, to, PIECE_BYTES, reason),
        }
    }

    /// As [`new`](Self::new), but between contexts always through two pieces of host memory of this
    /// size.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), or [`Error::Zero`].
    pub fn staged(from: &Queue, to: &Queue, bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::Zero {
                what: "the piece size of a bridge",
            });
        }
        if from.context() == to.context() {
            return Ok(Self::by(from, to, Way::Direct));
        }
        Self::by_staging(from, to, bytes, "staging was requested".to_owned())
    }

    fn by_staging(from: &Queue, to: &Queue, bytes: usize, reason: String) -> Result<Self> {
        let memory = Arc::new(Staging::new(from, bytes)?);
        Ok(Self::by(from, to, Way::Staging { memory, reason }))
    }

    fn by(from: &Queue, to: &Queue, way: Way) -> Self {
        Self {
            from: from.clone(),
            to: to.clone(),
            way,
            enqueuing: Mutex::new(()),
            svm: Mutex::new(None),
        }
    }

    /// How the bytes of buffer objects move.
    #[must_use]
    pub fn route(&self) -> BridgeRoute {
        match self.way {
            Way::Direct => BridgeRoute::Direct,
            Way::Foreign(_) => BridgeRoute::Foreign,
            Way::Staging { .. } => BridgeRoute::Staging,
        }
    }

    /// The route and the reason for it, in one line.
    #[must_use]
    pub fn explain(&self) -> String {
        let route = self.route();
        let device = self.to.context().device().name();
        match &self.way {
            Way::Direct => format!("{route}: both queues belong to one context"),
            Way::Foreign(_) => {
                format!("{route}: a kernel reads the other context's buffer; a test pattern arrived on `{device}`")
            }
            Way::Staging { memory, reason } => format!(
                "{route}: {PIECES} pieces of {} bytes of pinned host memory; not direct: {reason}",
                memory.bytes
            ),
        }
    }

    /// Copies `count` elements from `source_at` in `source` to `target_at` in `target`, and waits.
    ///
    /// Staging is much faster this way than by [`copy_async`](Self::copy_async) where a driver is slow to notice a
    /// completed user event: NVIDIA's (driver 580) takes up to 20 ms for each piece, so asynchronous copies there need
    /// pieces of 64 MiB and more.
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
        let Way::Staging { memory, .. } = &self.way else {
            return self.copy_async(source, source_at, target, target_at, count)?.wait();
        };
        let (source, target) = (source.into().0, target.into().0);
        self.settle((source, source_at), (target, target_at), count)?;
        let _alone = self.enqueuing.lock();
        memory.copy((&self.from, source, source_at), (&self.to, target, target_at), count)
    }

    /// Enqueues the copy. No host thread waits: between contexts a callback at the end of one queue's command starts
    /// the other's. Copies of one bridge follow each other.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], [`Error::ContextMismatch`] for a buffer of neither context,
    /// [`Error::Access`] for a buffer that the host, or on the foreign route the kernel, may not access, or a driver
    /// error. Then the pieces that were enqueued have ended, and the target's contents are
    /// unspecified.
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
        if let Way::Direct = &self.way {
            // The second queue's order is the one that later commands see.
            self.to.wait_for_queue(&self.from)?;
            let event = target.copy_from(&self.to, target_at, MemRef(source), source_at, count)?;
            if self.from != self.to {
                self.from.wait_for(&event)?;
            }
            event.flush()?;
            return Ok(BridgeCopy::within(event));
        }
        self.settle((source, source_at), (target, target_at), count)?;
        let (from, to) = (&self.from, &self.to);
        let _alone = self.enqueuing.lock();
        match &self.way {
            Way::Staging { memory, .. } => memory.copy_async((from, source, source_at), (to, target, target_at), count),
            Way::Foreign(kernels) => kernels.copy((from, source, source_at), (to, target, target_at), count),
            Way::Direct => unreachable!("handled above"),
        }
    }

    /// That the ranges may be copied between contexts, and that no other queue uses the buffers.
    fn settle<T: Pod>(
        &self,
        (source, source_at): (&Object<T>, usize),
        (target, target_at): (&Object<T>, usize),
        count: usize,
    ) -> Result<()> {
        source.host_range(source_at, count, false)?;
        target.host_range(target_at, count, true)?;
        source.settle(&self.from, false)?;
        target.settle(&self.to, true)
    }
}

impl fmt::Debug for BufferBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferBridge")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("route", &self.explain())
            .finish_non_exhaustive()
    }
}
