//! Scratch memory, kept for each queue that a plan is used on.

use std::sync::Arc;

use clmgr::{C32, Context, DeviceKind, Queue, Result};
use parking_lot::Mutex;

use crate::memory::Memory;

/// The scratch memory of passes and splits. A chunk of the batch that fits is done at a time, which
/// keeps the scratch memory in a CPU's cache.
const BYTES_ON_CPU: usize = 4 << 20;
const BYTES_ON_GPU: usize = 256 << 20;
/// The queues whose scratch memory a plan keeps.
const QUEUES: usize = 4;

/// The bytes of scratch memory that a transform should keep to.
pub(crate) fn bytes(context: &Context) -> usize {
    match context.device().kind() {
        DeviceKind::Cpu => BYTES_ON_CPU,
        _ => BYTES_ON_GPU,
    }
}

/// The scratch memory of a plan on one queue. The lock is held while the kernels of one transform
/// are enqueued: those of another would overwrite what the first ones hand on.
#[derive(Default)]
pub(crate) struct Scratch(pub Mutex<Option<Memory<C32>>>);

/// The scratch memory of a plan, by queue.
#[derive(Default)]
pub(crate) struct Scratches(Mutex<Vec<(Queue, Arc<Scratch>)>>);

impl Scratches {
    /// The scratch memory for this queue, whose order keeps one transform after the other.
    pub fn of(&self, queue: &Queue) -> Arc<Scratch> {
        let mut kept = self.0.lock();
        let found = kept.iter().position(|(of, _)| of == queue);
        let entry = match found {
            Some(position) => kept.remove(position),
            None => (queue.clone(), Arc::default()),
        };
        let scratch = entry.1.clone();
        kept.push(entry);
        // The one that was not used for longest goes. Its drop waits for its last use, which is not
        // done under the lock.
        let gone = (kept.len() > QUEUES).then(|| kept.remove(0));
        drop(kept);
        drop(gone);
        scratch
    }
}

/// The memory in `kept`, replaced if it holds less than `len` numbers.
pub(crate) fn grown<'a>(kept: &'a mut Option<Memory<C32>>, context: &Context, len: usize) -> Result<&'a Memory<C32>> {
    if kept.as_ref().is_some_and(|memory| memory.len() < len) {
        *kept = None;
    }
    match kept {
        Some(memory) => Ok(memory),
        empty => Ok(empty.insert(Memory::new(context, len)?)),
    }
}
