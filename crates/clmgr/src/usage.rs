//! Which queues have used an allocation, so that it is not freed under them.
//!
//! `clSVMFree` and the memory under `CL_MEM_USE_HOST_PTR` do not wait for commands. Each allocation
//! therefore keeps the last command of every queue that used it, and its drop waits for those. A
//! raw handle in a kernel's arguments is led back to its allocation by the context's registry.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::error::Result;
use crate::handle::Handle;
use crate::queue::Queue;

/// The queues that used one allocation, each with its last command.
#[derive(Default)]
pub(crate) struct Usage(Mutex<Vec<(Queue, u64)>>);

impl Usage {
    /// Notes that the command `number` of `queue` uses the allocation.
    pub fn note(&self, queue: &Queue, number: u64) {
        let mut uses = self.0.lock();
        uses.retain(|(used, last)| used == queue || !used.has_ended(*last));
        match uses.iter_mut().find(|(used, _)| used == queue) {
            Some((_, last)) => *last = number.max(*last),
            None => uses.push((queue.clone(), number)),
        }
    }

    /// Waits for every use.
    pub fn wait(&self) -> Result<()> {
        self.wait_where(|_| true)
    }

    /// Waits for every use by a queue other than `queue`, whose own order is enough.
    pub fn wait_except(&self, queue: &Queue) -> Result<()> {
        self.wait_where(|used| used != queue)
    }

    fn wait_where(&self, which: impl Fn(&Queue) -> bool) -> Result<()> {
        // The driver is not called under the lock: another thread may want to note a use.
        let pending: Vec<_> = self
            .0
            .lock()
            .iter()
            .filter(|(used, last)| which(used) && !used.has_ended(*last))
            .map(|(used, _)| used.clone())
            .collect();
        pending.iter().try_for_each(Queue::drain)
    }
}

/// The live allocations of a context, found by raw handle or address.
#[derive(Default)]
pub(crate) struct Registry(RwLock<Live>);

#[derive(Default)]
struct Live {
    objects: HashMap<Handle, Weak<Usage>>,
    /// First address, to the address behind the last byte and the usage.
    ranges: BTreeMap<usize, (usize, Weak<Usage>)>,
}

impl Registry {
    pub fn add_object(&self, object: Handle, usage: &Arc<Usage>) {
        self.0.write().objects.insert(object, Arc::downgrade(usage));
    }

    pub fn remove_object(&self, object: Handle) {
        self.0.write().objects.remove(&object);
    }

    pub fn add_range(&self, start: Handle, bytes: usize, usage: &Arc<Usage>) {
        let start = start.0.addr();
        self.0
            .write()
            .ranges
            .insert(start, (start.saturating_add(bytes), Arc::downgrade(usage)));
    }

    pub fn remove_range(&self, start: Handle) {
        self.0.write().ranges.remove(&start.0.addr());
    }

    /// The usage of the buffer object `object`, if it is one of ours.
    pub fn of_object(&self, object: Handle) -> Option<Arc<Usage>> {
        self.0.read().objects.get(&object)?.upgrade()
    }

    /// The usage of the allocation that `address` lies in, if it is one of ours.
    pub fn of_address(&self, address: usize) -> Option<Arc<Usage>> {
        let live = self.0.read();
        let (_, (end, usage)) = live.ranges.range(..=address).next_back()?;
        (address < *end).then(|| usage.upgrade())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_led_to_its_allocation_and_to_no_neighbour() {
        let registry = Registry::default();
        let (low, high) = (Arc::new(Usage::default()), Arc::new(Usage::default()));
        let at = |address: usize| Handle(std::ptr::without_provenance_mut(address));
        registry.add_range(at(0x1000), 0x100, &low);
        registry.add_range(at(0x1100), 0x100, &high);
        let found = |address| registry.of_address(address);
        assert!(Arc::ptr_eq(&found(0x1000).unwrap(), &low));
        assert!(Arc::ptr_eq(&found(0x10FF).unwrap(), &low));
        assert!(Arc::ptr_eq(&found(0x1100).unwrap(), &high));
        assert!(found(0xFFF).is_none() && found(0x1200).is_none());
        registry.remove_range(at(0x1000));
        assert!(found(0x1080).is_none());
        drop(high);
        assert!(found(0x1100).is_none());
    }
}
