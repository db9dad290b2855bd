//! What lies at which address.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hip_sys::hipError_t;
use parking_lot::RwLock;

use super::backing::Backing;
use super::mapping::{Mapping, PAGE, Span};
use super::sealed::{self, Pages};
use crate::device::Device;
use crate::error::Result;

/// Whose memory it is and where it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `hipMalloc`.
    Device,
    /// `hipHostMalloc`.
    Pinned,
    /// The user's own memory, after `hipHostRegister`.
    Registered,
    /// `hipMallocManaged`.
    Managed,
    /// Another API's or process's memory, mapped by `hipExternalMemoryGetMappedBuffer`.
    Imported,
    /// Another process's memory, opened by `hipIpcOpenMemHandle`.
    Opened,
    /// Physical memory of `hipMemCreate` where `hipMemMap` put it.
    Virtual,
    /// OpenCL's device memory.
    ForeignVram,
    /// OpenCL's fine-grain memory, which lives on the host.
    ForeignHost,
}

impl Kind {
    /// Whether HIP treats it as a device's own memory.
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Imported | Self::Opened | Self::Virtual)
    }
}

/// A living range of memory. Commands hold it, so none ever runs on freed memory.
pub(crate) struct Allocation {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    pub(crate) device: &'static Device,
    pub(crate) flags: c_uint,
    charged: usize,
    mapping: Option<Mapping>,
    /// What a device may do with it, as `hipMemAccessFlags` counts.
    access: AtomicU32,
    /// The devices that HSA lets reach it, a bit each.
    allowed: AtomicU64,
    /// No other memory of the process has or had it.
    pub(crate) number: u32,
    /// `HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS` as the program set it.
    pub(crate) synchronous: AtomicBool,
    /// What lives as long as the memory: a pool's account, a file.
    keeps: Option<Keeps>,
}

const READ_WRITE: u32 = 3;

fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Something that an allocation keeps alive.
pub(crate) type Keeps = Arc<dyn std::any::Any + Send + Sync>;

impl Allocation {
    pub(crate) fn owned(
        mapping: Mapping,
        bytes: usize,
        kind: Kind,
        device: &'static Device,
        flags: c_uint,
        charged: usize,
    ) -> Self {
        Self {
            base: mapping.base(),
            bytes,
            kind,
            device,
            flags,
            charged,
            mapping: Some(mapping),
            access: AtomicU32::new(READ_WRITE),
            allowed: AtomicU64::new(0),
            number: next_number(),
            synchronous: AtomicBool::new(false),
            keeps: None,
        }
    }

    /// Memory that someone else owns and frees.
    pub(crate) fn borrowed(base: usize, bytes: usize, kind: Kind, device: &'static Device, flags: c_uint) -> Self {
        Self {
            base,
            bytes,
            kind,
            device,
            flags,
            charged: 0,
            mapping: None,
            access: AtomicU32::new(READ_WRITE),
            allowed: AtomicU64::new(0),
            number: next_number(),
            synchronous: AtomicBool::new(false),
            keeps: None,
        }
    }

    pub(crate) fn keeping(mut self, keeps: Keeps) -> Self {
        self.keeps = Some(keeps);
        self
    }

    /// The value passed to [`keeping`](Self::keeping), if it is a `T`.
    pub(crate) fn kept<T: 'static>(&self) -> Option<&T> {
        self.keeps.as_ref()?.downcast_ref()
    }

    /// Lets these devices reach the memory, and no others but its own.
    pub(crate) fn allow(&self, devices: u64) {
        self.allowed.store(devices, Ordering::Release);
    }

    pub(crate) fn is_allowed(&self, ordinal: usize) -> bool {
        self.allowed.load(Ordering::Acquire) >> ordinal & 1 == 1
    }

    pub(crate) fn set_access(&self, access: u32) {
        self.access.store(access, Ordering::Release);
    }

    fn is_readable(&self) -> bool {
        self.access.load(Ordering::Acquire) != 0
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.access.load(Ordering::Acquire) == READ_WRITE
    }

    /// The file that holds the memory, and the offset of `base` in it. `hipMalloc` memory has one, and so has OpenCL
    /// memory that was passed together with its file.
    pub(crate) fn backing(&self) -> Option<&Backing> {
        match &self.mapping {
            Some(mapping) => mapping.backing(),
            None => self.kept(),
        }
    }

    /// Fills small memory of ours with bytes that are not plausible data, as when it was fresh.
    pub(crate) fn poison(&self) {
        if let Some(mapping) = &self.mapping {
            mapping.poison(self.bytes);
        }
    }

    /// Whether the memory was allocated here and is freed with this value.
    pub(crate) fn is_owned(&self) -> bool {
        self.mapping.is_some()
    }

    fn span(&self) -> Span {
        self.mapping.as_ref().map_or(
            Span {
                start: self.base,
                bytes: self.bytes,
            },
            Mapping::span,
        )
    }

    fn contains(&self, address: usize) -> bool {
        address >= self.base && address - self.base < self.bytes
    }

    fn covers(&self, address: usize, bytes: usize) -> bool {
        self.contains(address) && bytes <= self.bytes - (address - self.base)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.device.used_bytes.fetch_sub(self.charged, Ordering::Relaxed);
    }
}

struct Entry {
    end: usize,
    /// `None` once freed: the addresses are still ours, the memory is gone.
    allocation: Option<Arc<Allocation>>,
}

/// By first address of the span, guard pages included. Spans never overlap.
static ENTRIES: RwLock<BTreeMap<usize, Entry>> = RwLock::new(BTreeMap::new());

/// Ranges of `hipMemAddressReserve`, first address to end: no memory but where some is mapped.
static RESERVED: RwLock<BTreeMap<usize, usize>> = RwLock::new(BTreeMap::new());

/// Registers a range of addresses in which memory may be mapped.
pub(crate) fn reserve(start: usize, bytes: usize) {
    RESERVED.write().insert(start, start + bytes);
}

/// Forgets a reserved range if it begins at `start`, has `bytes` bytes and holds no memory.
///
/// # Errors
/// `hipErrorInvalidValue` otherwise.
pub(crate) fn unreserve(start: usize, bytes: usize) -> Result {
    let mut reserved = RESERVED.write();
    if reserved.get(&start) != Some(&start.saturating_add(bytes)) || overlaps(&ENTRIES.read(), start, bytes) {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    reserved.remove(&start);
    Ok(())
}

/// Whether all of a range was reserved in one piece.
pub(crate) fn is_reserved(start: usize, bytes: usize) -> bool {
    let reserved = RESERVED.read();
    let range = reserved.range(..=start).next_back();
    range.is_some_and(|(_, &end)| start.checked_add(bytes).is_some_and(|last| last <= end))
}

fn touches_reserved(start: usize, bytes: usize) -> bool {
    let last = start.saturating_add(bytes);
    let reserved = RESERVED.read();
    let range = reserved.range(..last).next_back();
    range.is_some_and(|(_, &end)| end > start)
}

/// What an address is to us.
enum At {
    Living(Arc<Allocation>),
    /// A guard page, or memory that was freed.
    Dead,
    Unknown,
}

fn at(address: usize) -> At {
    let entries = ENTRIES.read();
    match entries.range(..=address).next_back() {
        Some((_, entry)) if address < entry.end => match &entry.allocation {
            Some(allocation) if allocation.contains(address) => At::Living(allocation.clone()),
            _ => At::Dead,
        },
        _ => At::Unknown,
    }
}

/// Whether any address of `[start, start + bytes)` belongs to an entry.
fn overlaps(entries: &BTreeMap<usize, Entry>, start: usize, bytes: usize) -> bool {
    let end = start.saturating_add(bytes);
    entries
        .range(..end)
        .next_back()
        .is_some_and(|(_, entry)| entry.end > start)
}

/// Adds memory whose addresses are known to be free, because they were mapped just now.
pub(crate) fn add(allocation: Arc<Allocation>) {
    let span = allocation.span();
    sealed::admit(|| {
        ENTRIES.write().insert(
            span.start,
            Entry {
                end: span.start + span.bytes,
                allocation: Some(allocation),
            },
        );
    });
}

/// Adds foreign memory, unless part of it is known already.
pub(crate) fn add_borrowed(allocation: Allocation) -> std::result::Result<(), Allocation> {
    let mut entries = ENTRIES.write();
    if overlaps(&entries, allocation.base, allocation.bytes) {
        return Err(allocation);
    }
    let end = allocation.base + allocation.bytes;
    entries.insert(
        allocation.base,
        Entry {
            end,
            allocation: Some(Arc::new(allocation)),
        },
    );
    Ok(())
}

/// Ends the life of the allocation at `base`; false if there is none.
pub(crate) fn remove(base: usize) -> bool {
    let mut entries = ENTRIES.write();
    let Some((&start, entry)) = entries.range_mut(..=base).next_back() else {
        return false;
    };
    let begins_here = |allocation: &Arc<Allocation>| allocation.base == base;
    if !entry.allocation.as_ref().is_some_and(begins_here) {
        return false;
    }
    let Some(allocation) = entry.allocation.take() else {
        return false;
    };
    if allocation.mapping.is_none() {
        entries.remove(&start);
    }
    // Its last owner may be this one, and its end comes back to this table.
    drop(entries);
    drop(allocation);
    true
}

/// Forgets the freed span that began at `start`: its addresses go back to the system.
pub(super) fn forget(start: usize) {
    let mut entries = ENTRIES.write();
    if entries.get(&start).is_some_and(|entry| entry.allocation.is_none()) {
        entries.remove(&start);
    }
}

/// The allocation that holds `address`.
pub(crate) fn find(address: usize) -> Option<Arc<Allocation>> {
    match at(address) {
        At::Living(allocation) => Some(allocation),
        At::Dead | At::Unknown => None,
    }
}

/// The living allocations of `kind` that overlap a range.
pub(crate) fn within(start: usize, bytes: usize, kind: Kind) -> Vec<Arc<Allocation>> {
    let end = start.saturating_add(bytes);
    let entries = ENTRIES.read();
    let living = entries.range(..end).filter_map(|(_, entry)| entry.allocation.clone());
    living
        .filter(|allocation| allocation.kind == kind && allocation.base + allocation.bytes > start)
        .collect()
}

/// The whole pages of all device memory that was allocated or mapped here, allocation by allocation.
pub(crate) fn for_each_device_pages(mut body: impl FnMut(Pages)) {
    for entry in ENTRIES.read().values() {
        let living = entry.allocation.as_ref();
        let ours = |allocation: &&Arc<Allocation>| {
            allocation.is_owned() && matches!(allocation.kind, Kind::Device | Kind::Imported | Kind::Opened)
        };
        if let Some(allocation) = living.filter(ours) {
            let start = allocation.base / PAGE * PAGE;
            let end = (allocation.base + allocation.bytes).next_multiple_of(PAGE);
            body(Pages {
                start,
                bytes: end - start,
            });
        }
    }
}

/// The first addresses of the living allocations that `wanted` picks.
pub(crate) fn bases(wanted: impl Fn(&Allocation) -> bool) -> Vec<usize> {
    let entries = ENTRIES.read();
    let living = entries.values().filter_map(|entry| entry.allocation.as_ref());
    living
        .filter(|allocation| wanted(allocation))
        .map(|allocation| allocation.base)
        .collect()
}

/// The allocation that holds all of a range the device is to access.
pub(crate) fn device_range(address: usize, bytes: usize) -> Result<Arc<Allocation>> {
    find(address)
        .filter(|allocation| allocation.covers(address, bytes) && allocation.is_readable())
        .ok_or(hipError_t::hipErrorInvalidValue)
}

/// The allocation that holds all of a range, `None` if the range is the user's ordinary memory, an error if it is
/// partly or wholly something of ours that it must not be.
pub(crate) fn any_range(address: usize, bytes: usize) -> Result<Option<Arc<Allocation>>> {
    match at(address) {
        At::Living(allocation) if allocation.covers(address, bytes) && allocation.is_readable() => Ok(Some(allocation)),
        At::Living(_) | At::Dead => Err(hipError_t::hipErrorInvalidValue),
        At::Unknown if overlaps(&ENTRIES.read(), address, bytes) || touches_reserved(address, bytes) => {
            Err(hipError_t::hipErrorInvalidValue)
        }
        At::Unknown => Ok(None),
    }
}
