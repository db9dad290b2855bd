//! Device memory kept for the next request.

mod bins;
mod stats;
mod store;

use std::borrow::Cow;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use parking_lot::Mutex;
pub use stats::PoolStats;
use store::{Store, acquire, block_bytes};

use crate::context::Context;
use crate::error::{Error, Result, bytes_of};
use crate::event::Event;
use crate::factory::{Buffer, BufferStrategy, MapGuardMut, Memory};
use crate::queue::Queue;

/// Keeps memory of one kind and one context for reuse. A clone is the same pool.
///
/// Memory comes in blocks whose sizes waste less than one part in sixteen; no block is smaller than
/// 256 bytes. A request that a held block serves takes no driver call if the block was last used by
/// the same queue or is known to be unused; if another queue still uses it, the new queue waits for
/// that one's last command, on the device. When the device is out of memory, held blocks are freed
/// step by step before a request fails.
#[derive(Clone)]
pub struct MemoryPool(Arc<Inner>);

struct Inner {
    context: Context,
    strategy: BufferStrategy,
    hold: usize,
    store: Mutex<Store<Block>>,
}

/// Memory that is not lent, and the work that may still use it.
struct Block {
    memory: Memory<u8>,
    last_uses: Vec<LastUse>,
}

/// The last command of a queue that used a block.
struct LastUse {
    queue: Queue,
    number: u64,
    event: Event,
}

impl LastUse {
    /// Whether commands of `queue` need not wait for it.
    fn is_over_for(&self, queue: &Queue) -> bool {
        self.queue == *queue || self.queue.has_ended(self.number)
    }
}

impl MemoryPool {
    /// An empty pool of this kind of memory, which holds all returned memory.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] for [`BufferStrategy::HostPtr`] and [`BufferStrategy::External`].
    pub fn new(context: &Context, strategy: BufferStrategy) -> Result<Self> {
        Self::with_limit(context, strategy, usize::MAX)
    }

    /// As [`new`](Self::new), but frees returned memory while `hold` bytes are held already.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_limit(context: &Context, strategy: BufferStrategy, hold: usize) -> Result<Self> {
        if matches!(strategy, BufferStrategy::HostPtr | BufferStrategy::External) {
            return Err(Error::NotSupported {
                what: format!("a pool of {strategy} memory"),
                device: context.device().name().to_owned(),
                reason: "a pool keeps only memory that OpenCL allocates".to_owned(),
            });
        }
        Ok(Self(Arc::new(Inner {
            context: context.clone(),
            strategy,
            hold,
            store: Mutex::default(),
        })))
    }

    /// Memory for `len` elements, to be used on `queue` first. Its contents are unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::Zero`], [`Error::TooLarge`], [`Error::ContextMismatch`] for a queue of another
    /// context, or the allocation's error after everything held was freed.
    pub fn acquire<T: Pod>(&self, queue: &Queue, len: usize) -> Result<PooledBuffer<T>> {
        let inner = &*self.0;
        if queue.context() != &inner.context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        let asked = bytes_of::<T>("the length of a buffer", len)?;
        let limit = usize::try_from(inner.context.device().max_alloc_bytes()).unwrap_or(usize::MAX);
        let bytes = block_bytes(asked, limit)?;
        let block = acquire(
            &inner.store,
            asked,
            bytes,
            |block: &Block| block.last_uses.iter().all(|last| last.is_over_for(queue)),
            |bytes| {
                Ok(Block {
                    memory: Memory::allocate(&inner.context, inner.strategy, bytes)?,
                    last_uses: Vec::new(),
                })
            },
        )?;
        let mut lent = PooledBuffer {
            buffer: ManuallyDrop::new(Buffer::from_parts(
                block.memory.retype(len),
                inner.strategy,
                Cow::Borrowed("from a pool"),
            )),
            asked,
            bytes,
            pool: self.0.clone(),
        };
        lent.order_after(&block.last_uses, queue)?;
        Ok(lent)
    }

    /// Frees the largest held blocks until at most `keep` bytes are held. It waits for what still
    /// uses them.
    pub fn trim(&self, keep: usize) {
        let freed = self.0.store.lock().shrink(keep);
        drop(freed);
    }

    /// The pool's statistics, displayed as a one-line report.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.0.store.lock().stats()
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPool")
            .field("strategy", &self.0.strategy)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A [`Buffer`] from a pool, which takes it back on drop. It may still be in use then.
pub struct PooledBuffer<T: Pod> {
    buffer: ManuallyDrop<Buffer<T>>,
    asked: usize,
    bytes: usize,
    pool: Arc<Inner>,
}

impl<T: Pod> PooledBuffer<T> {
    /// Makes `queue` wait for what other queues still do with the memory.
    fn order_after(&mut self, last_uses: &[LastUse], queue: &Queue) -> Result<()> {
        let mut waited = false;
        for last in last_uses.iter().filter(|last| !last.is_over_for(queue)) {
            queue.wait_for(&last.event)?;
            waited = true;
        }
        if waited {
            self.buffer.memory().usage().replace(queue);
            self.pool.store.lock().note_wait();
        }
        Ok(())
    }

    /// Copies `data`, which has the buffer's length, into the buffer, and waits.
    ///
    /// # Errors
    ///
    /// As [`Buffer::write`].
    pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
        self.buffer.write(queue, data)
    }

    /// Maps the buffer for the host to read and write.
    ///
    /// # Errors
    ///
    /// As [`Buffer::map_mut`].
    pub fn map_mut(&mut self, queue: &Queue) -> Result<MapGuardMut<'_, T>> {
        self.buffer.map_mut(queue)
    }

    /// The size of the block, at least that of the elements.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.bytes
    }
}

// No `DerefMut`: the buffer must not be swapped for one of another size.
impl<T: Pod> Deref for PooledBuffer<T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<T: Pod> fmt::Debug for PooledBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledBuffer")
            .field("len", &self.buffer.len())
            .field("block_bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl<T: Pod> Drop for PooledBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: the buffer is taken once and not used after this.
        let memory = unsafe { ManuallyDrop::take(&mut self.buffer) }.into_memory();
        let store = &self.pool.store;
        match last_uses(&memory) {
            Some(last_uses) => {
                let block = Block {
                    memory: memory.retype(self.bytes),
                    last_uses,
                };
                let refused = store.lock().put(self.asked, self.bytes, block, self.pool.hold);
                drop(refused);
            }
            // Not to be reused: its own drop waits for what uses it.
            None => {
                store.lock().forget(self.asked, self.bytes);
                drop(memory);
            }
        }
    }
}

/// The last uses of returned memory; `None` if it cannot be reused. The queues keep what fails.
fn last_uses<T>(memory: &Memory<T>) -> Option<Vec<LastUse>> {
    if !memory.retire() {
        return None;
    }
    let mark = |(queue, number): (Queue, u64)| {
        let marked = queue.record().and_then(|event| {
            queue.flush()?;
            Ok(event)
        });
        match marked {
            Ok(event) => Some(LastUse { queue, number, event }),
            Err(error) => {
                queue.defer(error);
                None
            }
        }
    };
    memory.usage().pending().into_iter().map(mark).collect()
}
