//! The blocks that a pool holds, and how it gets one. It knows no OpenCL.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::bins::bin_bytes;
use super::stats::PoolStats;
use crate::error::{Error, Result};

/// The held blocks by size. Every block of a size has exactly that size.
pub(super) struct Store<B> {
    held: BTreeMap<usize, Vec<B>>,
    stats: PoolStats,
}

impl<B> Default for Store<B> {
    fn default() -> Self {
        Self {
            held: BTreeMap::new(),
            stats: PoolStats::default(),
        }
    }
}

impl<B> Store<B> {
    pub fn stats(&self) -> PoolStats {
        self.stats
    }

    pub fn note_wait(&mut self) {
        self.stats.waits += 1;
    }

    /// A held block of this size: one that is ready, the last one put back first, else any.
    fn take(&mut self, bytes: usize, ready: impl Fn(&B) -> bool) -> Option<B> {
        let blocks = self.held.get_mut(&bytes)?;
        let position = match blocks.iter().rposition(ready) {
            Some(position) => position,
            // The oldest one will be ready first.
            None if !blocks.is_empty() => 0,
            None => return None,
        };
        self.stats.held_bytes -= bytes;
        Some(blocks.remove(position))
    }

    fn lend(&mut self, asked: usize, bytes: usize) {
        self.stats.asked_bytes += asked;
        self.stats.lent_bytes += bytes;
        self.stats.note_peak();
    }

    /// Takes a lent block back; returns it to the caller to free if more than `limit` would be
    /// held.
    pub fn put(&mut self, asked: usize, bytes: usize, block: B, limit: usize) -> Option<B> {
        self.stats.asked_bytes -= asked;
        self.stats.lent_bytes -= bytes;
        if self.stats.held_bytes + bytes > limit {
            self.stats.freed += 1;
            return Some(block);
        }
        self.stats.held_bytes += bytes;
        self.held.entry(bytes).or_default().push(block);
        None
    }

    /// A lent block is lost: it cannot be used again.
    pub fn forget(&mut self, asked: usize, bytes: usize) {
        self.stats.asked_bytes -= asked;
        self.stats.lent_bytes -= bytes;
        self.stats.freed += 1;
    }

    /// Takes the largest blocks until at most `keep` bytes are held.
    pub fn shrink(&mut self, keep: usize) -> Vec<B> {
        let mut taken = Vec::new();
        while self.stats.held_bytes > keep {
            match self.take_largest() {
                Some(block) => taken.push(block),
                None => break,
            }
        }
        taken
    }

    fn take_largest(&mut self) -> Option<B> {
        let mut entry = self.held.last_entry()?;
        while entry.get().is_empty() {
            entry.remove();
            entry = self.held.last_entry()?;
        }
        let bytes = *entry.key();
        let block = entry.get_mut().pop();
        self.stats.held_bytes -= bytes;
        self.stats.freed += 1;
        block
    }

    fn take_ready(&mut self, ready: impl Fn(&B) -> bool) -> Vec<B> {
        let mut taken = Vec::new();
        for (bytes, blocks) in &mut self.held {
            let (free, busy): (Vec<_>, Vec<_>) = blocks.drain(..).partition(&ready);
            *blocks = busy;
            self.stats.held_bytes -= bytes * free.len();
            self.stats.freed += free.len() as u64;
            taken.extend(free);
        }
        taken
    }
}

/// The size of the block for a request, where no block may be larger than `limit`.
pub(super) fn block_bytes(request: usize, limit: usize) -> Result<usize> {
    if request > limit {
        return Err(Error::TooLarge {
            what: "the size of a buffer",
            got: format!("{request} bytes"),
            limit: limit as u64,
        });
    }
    Ok(bin_bytes(request).map_or(limit, |bytes| bytes.min(limit)))
}

/// A block of `bytes` bytes: a held one, else a new one.
///
/// When there is not memory, it frees the held blocks that are ready, then the largest held ones one by one, each of
/// which may have to wait for the device, and tries again after each step. Blocks are made and freed outside the lock.
pub(super) fn acquire<B>(
    store: &Mutex<Store<B>>,
    asked: usize,
    bytes: usize,
    ready: impl Fn(&B) -> bool,
    mut allocate: impl FnMut(usize) -> Result<B>,
) -> Result<B> {
    {
        let mut store = store.lock();
        if let Some(block) = store.take(bytes, &ready) {
            store.stats.hits += 1;
            store.lend(asked, bytes);
            return Ok(block);
        }
    }
    let mut outcome = allocate(bytes);
    let mut first = true;
    while let Err(error) = &outcome
        && is_out_of_memory(error)
    {
        let freed = {
            let mut store = store.lock();
            let mut freed = Vec::new();
            if first {
                store.stats.out_of_memory += 1;
                freed = store.take_ready(&ready);
            }
            if freed.is_empty() {
                freed.extend(store.take_largest());
            }
            freed
        };
        first = false;
        if freed.is_empty() {
            break;
        }
        drop(freed);
        outcome = allocate(bytes);
    }
    let mut store = store.lock();
    match outcome {
        Ok(block) => {
            store.stats.misses += 1;
            store.lend(asked, bytes);
            Ok(block)
        }
        Err(error) => {
            store.stats.failures += 1;
            Err(error)
        }
    }
}

fn is_out_of_memory(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(
            opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE
                | opencl_sys::CL_OUT_OF_RESOURCES
                | opencl_sys::CL_OUT_OF_HOST_MEMORY
        )
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    /// A device with so much memory, and which of its blocks live.
    #[derive(Default)]
    struct Device {
        capacity: usize,
        live: BTreeMap<u64, usize>,
        made: u64,
    }

    struct Block {
        id: u64,
        busy: bool,
        device: Rc<RefCell<Device>>,
    }

    impl Drop for Block {
        fn drop(&mut self) {
            let gone = self.device.borrow_mut().live.remove(&self.id);
            assert!(gone.is_some(), "a block was freed twice");
        }
    }

    fn allocate(device: &Rc<RefCell<Device>>, bytes: usize) -> Result<Block> {
        let mut inner = device.borrow_mut();
        if inner.live.values().sum::<usize>() + bytes > inner.capacity {
            return Err(Error::Call {
                call: "test".to_owned(),
                code: opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE,
            });
        }
        inner.made += 1;
        let id = inner.made;
        inner.live.insert(id, bytes);
        Ok(Block {
            id,
            busy: false,
            device: device.clone(),
        })
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire(usize),
        Release { which: usize, busy: bool },
        Shrink(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1usize..40_000).prop_map(Step::Acquire),
            4 => (any::<usize>(), any::<bool>())
                .prop_map(|(which, busy)| Step::Release { which, busy }),
            1 => (0usize..100_000).prop_map(Step::Shrink),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn the_pool_keeps_every_block_once_and_counts_right(
            steps in steps(),
            capacity in 10_000usize..200_000,
            limit in 0usize..150_000,
        ) {
            let device = Rc::new(RefCell::new(Device { capacity, ..Device::default() }));
            let store = Mutex::new(Store::default());
            // The model: what is lent, and what is held by size.
            let mut lent: Vec<(usize, usize, Block)> = Vec::new();
            let mut held: BTreeMap<usize, usize> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Acquire(asked) => {
                        let bytes = block_bytes(asked, capacity).unwrap_or(0);
                        if bytes == 0 {
                            continue;
                        }
                        let in_bin = held.get(&bytes).copied().unwrap_or(0);
                        let made = device.borrow().made;
                        let got = acquire(&store, asked, bytes, |b: &Block| !b.busy, |bytes| {
                            allocate(&device, bytes)
                        });
                        match got {
                            Ok(block) => {
                                let size = device.borrow().live[&block.id];
                                prop_assert!(size == bytes && size >= asked);
                                prop_assert!(lent.iter().all(|(_, _, b)| b.id != block.id));
                                prop_assert_eq!(device.borrow().made == made, in_bin > 0);
                                lent.push((asked, bytes, block));
                            }
                            Err(_) => {
                                prop_assert_eq!(in_bin, 0);
                                let lent: usize = lent.iter().map(|(_, bytes, _)| bytes).sum();
                                prop_assert!(lent + bytes > capacity, "gave up with memory left");
                            }
                        }
                    }
                    Step::Release { which, busy } if !lent.is_empty() => {
                        let (asked, bytes, mut block) = lent.swap_remove(which % lent.len());
                        block.busy = busy;
                        let refused = store.lock().put(asked, bytes, block, limit);
                        drop(refused);
                    }
                    Step::Release { .. } => {}
                    Step::Shrink(keep) => {
                        let freed = store.lock().shrink(keep);
                        drop(freed);
                        prop_assert!(store.lock().stats().held_bytes <= keep);
                    }
                }
                // Held is what lives and is not lent.
                held.clear();
                for (id, bytes) in &device.borrow().live {
                    if lent.iter().all(|(_, _, block)| block.id != *id) {
                        *held.entry(*bytes).or_default() += 1;
                    }
                }
                let stats = store.lock().stats();
                prop_assert_eq!(stats.held_bytes, held.iter().map(|(b, n)| b * n).sum::<usize>());
                prop_assert_eq!(stats.lent_bytes, lent.iter().map(|(_, b, _)| b).sum::<usize>());
                prop_assert_eq!(stats.asked_bytes, lent.iter().map(|(a, _, _)| a).sum::<usize>());
                prop_assert!(stats.held_bytes <= limit);
                prop_assert!(stats.peak_bytes <= capacity);
                prop_assert_eq!(stats.freed, device.borrow().made - device.borrow().live.len() as u64);
            }
            drop(lent);
            drop(store);
            prop_assert!(device.borrow().live.is_empty());
        }
    }

    #[test]
    fn a_ready_block_comes_before_a_busy_one_and_the_last_used_first() {
        let device = Rc::new(RefCell::new(Device {
            capacity: usize::MAX,
            ..Device::default()
        }));
        let store = Mutex::new(Store::default());
        let blocks: Vec<Block> = (0..3)
            .map(|_| acquire(&store, 256, 256, |b: &Block| !b.busy, |n| allocate(&device, n)).unwrap())
            .collect();
        for (mut block, busy) in blocks.into_iter().zip([false, false, true]) {
            block.busy = busy;
            assert!(store.lock().put(256, 256, block, usize::MAX).is_none());
        }
        let taken: Vec<Block> = (0..3)
            .map(|_| acquire(&store, 256, 256, |b: &Block| !b.busy, |n| allocate(&device, n)).unwrap())
            .collect();
        let order: Vec<u64> = taken.iter().map(|block| block.id).collect();
        assert_eq!(order, [2, 1, 3]);
    }
}
