//! Which queues have used an allocation, so it is not freed under them.
//!
//! `clSVMFree` and the memory under `CL_MEM_USE_HOST_PTR` do not wait for commands. Each allocation
//! therefore keeps the last command of every queue that used it, and its drop waits for those. The context's registry
//! traces a raw handle in a kernel's arguments back to its allocation.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::access::BufferAccess;
use crate::error::Result;
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::Queue;
use crate::sweep::Sweep;

/// The queues that used one allocation, each with its last command.
#[derive(Default)]
pub(crate) struct Usage(Mutex<Uses>);

struct Uses {
    list: Vec<Use>,
    /// When to check which commands have ended: the owners of the queues may never wait for them.
    sweep: Sweep,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            sweep: Sweep::every(FEW),
        }
    }
}

struct Use {
    queue: Queue,
    last: u64,
    /// A marker behind the last command.
    mark: Option<(u64, Event)>,
}

/// The fewest queues worth a check.
const FEW: usize = 16;

impl Use {
    fn has_ended(&self) -> bool {
        self.queue.has_ended(self.last)
    }

    /// Finds out whether the last command has ended, or marks it for the next time.
    fn ask(&mut self) {
        match &self.mark {
            Some((last, event)) if *last == self.last => {
                // The queue learns of a good end here. A failure is told to those who wait for the queue.
                let _ = event.is_complete();
            }
            _ => {
                let marked = self.queue.record();
                self.mark = marked.ok().map(|event| (self.last, event));
                let _ = self.queue.flush();
            }
        }
    }
}

impl Uses {
    fn sweep(&mut self) {
        self.list.retain(|known| !known.has_ended());
        if !self.sweep.is_due(self.list.len()) {
            return;
        }
        self.list.iter_mut().for_each(Use::ask);
        self.list.retain(|known| !known.has_ended());
        let left = self.list.len();
        self.sweep.done(left, left);
    }
}

impl Usage {
    /// Records that the command `number` of `queue` uses the allocation.
    pub fn note(&self, queue: &Queue, number: u64) {
        let uses = &mut *self.0.lock();
        let known = uses.list.iter_mut().find(|known| known.queue == *queue);
        match known {
            // The last user of the memory receives any error from freeing it.
            Some(known) => {
                known.queue = queue.clone();
                known.last = number.max(known.last);
            }
            None => {
                uses.sweep();
                uses.list.push(Use {
                    queue: queue.clone(),
                    last: number,
                    mark: None,
                });
            }
        }
    }

    /// The uses that are not known to have ended.
    pub fn pending(&self) -> Vec<(Queue, u64)> {
        let uses = &mut *self.0.lock();
        uses.list.retain(|known| !known.has_ended());
        let pending = uses.list.iter();
        pending.map(|known| (known.queue.clone(), known.last)).collect()
    }

    /// Forgets every use but `queue`'s, which waits for all of them from now on.
    pub fn replace(&self, queue: &Queue) {
        self.0.lock().list = vec![Use {
            queue: queue.clone(),
            last: queue.enqueued(),
            mark: None,
        }];
    }

    /// Waits for every use.
    pub fn wait(&self) -> Result<()> {
        self.wait_where(|_| true)
    }

    /// Waits for every use by a queue other than `queue`, whose own order is enough.
    pub fn wait_except(&self, queue: &Queue) -> Result<()> {
        self.wait_where(|used| used != queue)
    }

    /// Waits for every use, for a drop: the queues keep what fails for their next
    /// [`finish`](Queue::finish). Returns whether every use has ended.
    pub fn wait_in_drop(&self) -> bool {
        let mut ended = true;
        for (queue, _) in self.pending() {
            if let Err(error) = queue.drain() {
                queue.defer(error);
                ended = false;
            }
        }
        ended
    }

    fn wait_where(&self, which: impl Fn(&Queue) -> bool) -> Result<()> {
        // The driver is not called under the lock: another thread may want to note a use.
        let pending: Vec<_> = self
            .0
            .lock()
            .list
            .iter()
            .filter(|known| which(&known.queue) && !known.has_ended())
            .map(|known| known.queue.clone())
            .collect();
        pending.iter().try_for_each(Queue::drain)
    }
}

/// The live allocations of a context, found by raw handle or address.
#[derive(Default)]
pub(crate) struct Registry(RwLock<Live>);

#[derive(Default)]
struct Live {
    objects: HashMap<Handle, RegisteredObject>,
    /// First address, to the address behind the last byte and the usage.
    ranges: BTreeMap<usize, (usize, Weak<Usage>)>,
}

/// What is known about a buffer object. Several owners may hold references to one object.
struct RegisteredObject {
    usage: Arc<Usage>,
    access: BufferAccess,
    owners: usize,
}

impl Registry {
    /// Adds an owner of `object` and returns the usage that all owners share: the one that is known
    /// already, else `usage`.
    pub fn add_object(&self, object: Handle, access: BufferAccess, usage: Arc<Usage>) -> Arc<Usage> {
        let mut live = self.0.write();
        let known = live.objects.entry(object).or_insert(RegisteredObject {
            usage,
            access,
            owners: 0,
        });
        known.owners += 1;
        known.usage.clone()
    }

    /// Takes an owner away, before it releases its reference.
    pub fn remove_object(&self, object: Handle) {
        let mut live = self.0.write();
        if let Some(known) = live.objects.get_mut(&object) {
            known.owners -= 1;
            if known.owners == 0 {
                live.objects.remove(&object);
            }
        }
    }

    /// What kernels and host may do with `object`, if it is a known one.
    pub fn access_of(&self, object: Handle) -> Option<BufferAccess> {
        Some(self.0.read().objects.get(&object)?.access)
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
        Some(self.0.read().objects.get(&object)?.usage.clone())
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
    fn an_object_is_known_until_its_last_owner_goes_and_all_share_one_usage() {
        let registry = Registry::default();
        let object = Handle(std::ptr::without_provenance_mut(0x10));
        let access = BufferAccess::default();
        let first = registry.add_object(object, access, Arc::default());
        let second = registry.add_object(object, access, Arc::default());
        assert!(Arc::ptr_eq(&first, &second));
        registry.remove_object(object);
        assert!(Arc::ptr_eq(&registry.of_object(object).unwrap(), &first));
        registry.remove_object(object);
        assert!(registry.of_object(object).is_none());
    }

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
