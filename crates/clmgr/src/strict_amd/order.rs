//! Which dispatches amdocl keeps in order. It knows no OpenCL function.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// A problem that ROCm does not report as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// What it is.
    pub kind: HazardKind,
    /// The address or handle that it is about.
    pub at: usize,
}

/// The kinds of [`Hazard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HazardKind {
    /// Two kernels of one queue use one pointer that OpenCL did not allocate, at least one of them
    /// writes, and nothing that OpenCL tracks stands between them: on ROCm they may overlap (clr:
    /// rocclr/device/rocm/rocvirtual.cpp, the dependency tracking of dispatches).
    Unordered,
    /// A call that takes a pointer which OpenCL did not allocate, and on which amdocl dereferences
    /// null. The shim refuses the call.
    Crash,
    /// A context of several devices, whose shared virtual memory lies on the host.
    SeveralDevices,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.kind {
            HazardKind::Unordered => {
                "two kernels may overlap on memory that OpenCL did not allocate; put clFinish between them"
            }
            HazardKind::Crash => "filling or mapping memory that OpenCL did not allocate crashes; use a kernel",
            HazardKind::SeveralDevices => {
                "a context of several devices keeps its memory on the host; create one context per device"
            }
        };
        write!(f, "0x{:X}: {text}", self.at)
    }
}

/// The dispatches of a queue that are remembered, so a program which never waits does not fill the memory.
const REMEMBERED: usize = 256;

/// Memory as amdocl's tracking sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Memory {
    /// OpenCL memory, by its object or first address.
    Known(usize),
    /// A foreign pointer.
    Foreign(usize),
}

/// The use of memory by a kernel's argument.
#[derive(Clone, Copy, Debug)]
struct Use {
    memory: Memory,
    writes: bool,
}

impl Use {
    fn conflicts(&self, other: &Self) -> bool {
        self.memory == other.memory && (self.writes || other.writes)
    }
}

struct Dispatch {
    uses: Vec<Use>,
    event: usize,
}

/// What is known about the objects of one library.
#[derive(Default)]
pub(super) struct Orders {
    /// Shared virtual memory: first address, to the address behind the last byte.
    shared: BTreeMap<usize, usize>,
    /// The buffer objects, with the memory they stand for.
    objects: HashMap<usize, Memory>,
    arguments: HashMap<usize, BTreeMap<u32, Use>>,
    /// Further memory that kernels were declared to use, all of it counted as written.
    lists: HashMap<usize, Vec<Use>>,
    /// Kernels with declared pointers that OpenCL does not know.
    poisoned: HashSet<usize>,
    /// The dispatches of a queue that may still run, oldest first.
    running: HashMap<usize, Vec<Dispatch>>,
    hazards: Vec<Hazard>,
}

impl Orders {
    pub fn take_hazards(&mut self) -> Vec<Hazard> {
        std::mem::take(&mut self.hazards)
    }

    pub fn note(&mut self, kind: HazardKind, at: usize) {
        self.hazards.push(Hazard { kind, at });
    }

    pub fn add_shared(&mut self, start: usize, bytes: usize) {
        self.shared.insert(start, start.saturating_add(bytes));
    }

    pub fn remove_shared(&mut self, start: usize) {
        self.shared.remove(&start);
    }

    /// A new buffer object, whose memory is the host's at `host` or its own.
    pub fn add_object(&mut self, object: usize, host: usize) {
        let memory = match self.memory_at(host) {
            Memory::Known(start) => Memory::Known(start),
            Memory::Foreign(_) => Memory::Known(object),
        };
        self.objects.insert(object, memory);
    }

    /// A part of an object is tracked as the whole.
    pub fn add_part(&mut self, part: usize, whole: usize) {
        let memory = self.objects.get(&whole).copied();
        self.objects.insert(part, memory.unwrap_or(Memory::Known(whole)));
    }

    /// The memory at an address.
    pub fn memory_at(&self, address: usize) -> Memory {
        match self.shared.range(..=address).next_back() {
            Some((start, end)) if address < *end => Memory::Known(*start),
            _ => Memory::Foreign(address),
        }
    }

    pub fn set_pointer(&mut self, kernel: usize, index: u32, address: usize, writes: bool) {
        let memory = self.memory_at(address);
        self.set(kernel, index, Use { memory, writes });
    }

    /// An argument that may be a buffer object.
    pub fn set_value(&mut self, kernel: usize, index: u32, value: Option<usize>, writes: bool) {
        match value.and_then(|value| self.objects.get(&value)) {
            Some(&memory) => self.set(kernel, index, Use { memory, writes }),
            None => {
                if let Some(arguments) = self.arguments.get_mut(&kernel) {
                    arguments.remove(&index);
                }
            }
        }
    }

    fn set(&mut self, kernel: usize, index: u32, usage: Use) {
        self.arguments.entry(kernel).or_default().insert(index, usage);
    }

    /// The list of further pointers that a kernel uses. One that OpenCL does not know makes every
    /// dispatch fail.
    pub fn set_list(&mut self, kernel: usize, addresses: &[usize]) {
        let uses = addresses.iter().map(|&address| Use {
            memory: self.memory_at(address),
            writes: true,
        });
        let uses: Vec<Use> = uses.collect();
        let foreign = |usage: &Use| matches!(usage.memory, Memory::Foreign(_));
        let poisoned = uses.iter().any(foreign);
        self.lists.insert(kernel, uses);
        if poisoned {
            self.poisoned.insert(kernel);
        } else {
            self.poisoned.remove(&kernel);
        }
    }

    pub fn is_poisoned(&self, kernel: usize) -> bool {
        self.poisoned.contains(&kernel)
    }

    pub fn forget_kernel(&mut self, kernel: usize) {
        self.arguments.remove(&kernel);
        self.lists.remove(&kernel);
        self.poisoned.remove(&kernel);
    }

    /// A kernel was enqueued.
    pub fn dispatch(&mut self, queue: usize, kernel: usize, event: usize) {
        let arguments = self.arguments.get(&kernel).into_iter();
        let listed = self.lists.get(&kernel).into_iter().flatten();
        let uses: Vec<Use> = arguments.flat_map(BTreeMap::values).chain(listed).copied().collect();
        let running = self.running.entry(queue).or_default();
        let meets = |which: fn(&Memory) -> bool| {
            running
                .iter()
                .flat_map(|earlier| &earlier.uses)
                .find(|earlier| which(&earlier.memory) && uses.iter().any(|usage| usage.conflicts(earlier)))
        };
        // A conflict on memory that is known puts a barrier in front of the dispatch, which holds
        // for everything before it.
        if meets(|memory| matches!(memory, Memory::Known(_))).is_some() {
            running.clear();
        } else if let Some(earlier) = meets(|memory| matches!(memory, Memory::Foreign(_)))
            && let Memory::Foreign(at) = earlier.memory
        {
            self.hazards.push(Hazard {
                kind: HazardKind::Unordered,
                at,
            });
        }
        if running.len() == REMEMBERED {
            running.remove(0);
        }
        running.push(Dispatch { uses, event });
    }

    /// Every command of the queue has ended.
    pub fn drained(&mut self, queue: usize) {
        self.running.remove(&queue);
    }

    /// The commands of these events have ended.
    pub fn ended(&mut self, events: &[usize]) {
        for running in self.running.values_mut() {
            running.retain(|dispatch| dispatch.event == 0 || !events.contains(&dispatch.event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: usize = 1;
    const HIP: usize = 0x9000;

    /// Kernels 10 and 11 write `HIP`, and 12 reads it.
    fn orders() -> Orders {
        let mut orders = Orders::default();
        orders.add_shared(0x1000, 0x100);
        orders.add_object(0x50, 0);
        for (kernel, writes) in [(10, true), (11, true), (12, false)] {
            orders.set_pointer(kernel, 0, HIP, writes);
        }
        orders
    }

    fn hazards_of(orders: &mut Orders, kernels: &[usize]) -> usize {
        for &kernel in kernels {
            orders.dispatch(QUEUE, kernel, 0);
        }
        orders.take_hazards().len()
    }

    #[test]
    fn kernels_that_share_only_foreign_memory_are_not_ordered() {
        let mut orders = orders();
        assert_eq!(hazards_of(&mut orders, &[10, 12]), 1);
        assert_eq!(hazards_of(&mut orders, &[12]), 1, "the writer still runs");
    }

    #[test]
    fn readers_and_different_queues_do_no_harm_here() {
        let mut orders = orders();
        assert_eq!(hazards_of(&mut orders, &[12, 12]), 0);
        orders.dispatch(2, 10, 0);
        assert!(orders.take_hazards().is_empty());
    }

    #[test]
    fn a_finish_or_a_wait_for_the_event_orders() {
        let mut orders = orders();
        orders.dispatch(QUEUE, 10, 0xE);
        orders.ended(&[0xE]);
        assert_eq!(hazards_of(&mut orders, &[11]), 0);
        orders.drained(QUEUE);
        assert_eq!(hazards_of(&mut orders, &[12]), 0);
    }

    #[test]
    fn a_common_known_buffer_orders_only_if_one_kernel_writes_it() {
        for (writes, hazards) in [(true, 0), (false, 1)] {
            let mut orders = orders();
            orders.set_value(10, 1, Some(0x50), false);
            orders.set_value(11, 1, Some(0x50), writes);
            assert_eq!(hazards_of(&mut orders, &[10, 11]), hazards);
        }
    }

    #[test]
    fn a_view_and_an_inner_address_are_the_memory_they_lie_in() {
        let mut orders = orders();
        orders.add_object(0x60, 0x1000);
        orders.add_part(0x61, 0x60);
        orders.set_value(10, 1, Some(0x61), true);
        orders.set_pointer(11, 1, 0x1080, true);
        assert_eq!(hazards_of(&mut orders, &[10, 11]), 0);
        orders.remove_shared(0x1000);
        assert_eq!(orders.memory_at(0x1080), Memory::Foreign(0x1080));
    }

    #[test]
    fn a_listed_pointer_of_opencls_own_orders_what_shares_only_foreign_memory() {
        let mut orders = orders();
        for kernel in [10, 12] {
            orders.set_list(kernel, &[0x1000]);
        }
        assert_eq!(hazards_of(&mut orders, &[10, 12, 10]), 0);
        orders.forget_kernel(12);
        orders.set_pointer(12, 0, HIP, false);
        assert_eq!(hazards_of(&mut orders, &[12]), 1);
    }

    #[test]
    fn a_list_with_a_foreign_pointer_poisons_the_kernel_until_it_is_replaced() {
        let mut orders = orders();
        orders.set_list(10, &[0x1000, HIP]);
        assert!(orders.is_poisoned(10));
        orders.set_list(10, &[0x1000]);
        assert!(!orders.is_poisoned(10));
    }
}
