//! What lies at which address.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hip_sys::hipError_t;
use parking_lot::RwLock;

use super::mapping::{Mapping, Span};
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
    /// OpenCL's device memory.
    ForeignVram,
    /// OpenCL's fine-grain memory, which lives on the host.
    ForeignHost,
}

/// A living range of memory. Commands hold it, so that none ever runs on memory given back.
pub(crate) struct Allocation {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    pub(crate) device: &'static Device,
    pub(crate) flags: c_uint,
    charged: usize,
    mapping: Option<Mapping>,
}

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
        }
    }

    /// Memory that someone else owns and frees.
    pub(crate) fn borrowed(
        base: usize,
        bytes: usize,
        kind: Kind,
        device: &'static Device,
        flags: c_uint,
    ) -> Self {
        Self {
            base,
            bytes,
            kind,
            device,
            flags,
            charged: 0,
            mapping: None,
        }
    }

    /// Whether the memory was allocated here and is given back with this value.
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
        self.device
            .used_bytes
            .fetch_sub(self.charged, Ordering::Relaxed);
    }
}

struct Entry {
    end: usize,
    /// `None` once freed: the addresses are still ours, the memory is not there.
    allocation: Option<Arc<Allocation>>,
}

/// By first address of the span, guard pages included. Spans never overlap.
static ENTRIES: RwLock<BTreeMap<usize, Entry>> = RwLock::new(BTreeMap::new());

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
    ENTRIES.write().insert(
        span.start,
        Entry {
            end: span.start + span.bytes,
            allocation: Some(allocation),
        },
    );
}

/// Adds memory of someone else's, unless part of it is known already.
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
    if entries
        .get(&start)
        .is_some_and(|entry| entry.allocation.is_none())
    {
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

/// The allocation that holds all of a range the device is to access.
pub(crate) fn device_range(address: usize, bytes: usize) -> Result<Arc<Allocation>> {
    find(address)
        .filter(|allocation| allocation.covers(address, bytes))
        .ok_or(hipError_t::hipErrorInvalidValue)
}

/// The allocation that holds all of a range, `None` if the range is the user's ordinary memory, an error if it is
/// partly or wholly something of ours that it must not be.
pub(crate) fn any_range(address: usize, bytes: usize) -> Result<Option<Arc<Allocation>>> {
    match at(address) {
        At::Living(allocation) if allocation.covers(address, bytes) => Ok(Some(allocation)),
        At::Living(_) | At::Dead => Err(hipError_t::hipErrorInvalidValue),
        At::Unknown if overlaps(&ENTRIES.read(), address, bytes) => {
            Err(hipError_t::hipErrorInvalidValue)
        }
        At::Unknown => Ok(None),
    }
}
