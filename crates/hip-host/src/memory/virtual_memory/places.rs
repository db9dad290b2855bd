//! Ranges of addresses, and memory put into them.

use std::collections::HashMap;
use std::ffi::{c_ulonglong, c_void};
use std::os::fd::AsFd;
use std::sync::Arc;

use hip_sys::{hipError_t, hipMemAccessDesc, hipMemAccessFlags, hipMemGenericAllocationHandle_t, hipMemLocation};
use parking_lot::Mutex;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use super::{GRANULE, INVALID, Physical, find, location};
use crate::device::Device;
use crate::error::{entry, store};
use crate::memory::registry::{self, Allocation, Kind};
use crate::{log, stream};

/// A place where memory was put.
pub(super) struct Mapped {
    pub(super) memory: Arc<Physical>,
    /// By device, where it was set.
    access: Mutex<HashMap<usize, hipMemAccessFlags>>,
}

/// Whether the device has access to memory that `hipMemMap` put somewhere.
pub(crate) fn grants(allocation: &Allocation, device: &Device) -> bool {
    let access = allocation
        .kept::<Mapped>()
        .and_then(|mapped| mapped.access.lock().get(&device.ordinal).copied());
    access.is_some_and(|flags| flags != hipMemAccessFlags::hipMemAccessFlagsProtNone)
}

pub(crate) unsafe extern "C" fn mem_address_reserve(
    out: *mut *mut c_void,
    bytes: usize,
    alignment: usize,
    wish: *mut c_void,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipMemAddressReserve", || {
        if out.is_null()
            || flags != 0
            || bytes == 0
            || !bytes.is_multiple_of(GRANULE)
            || (alignment != 0 && !alignment.is_power_of_two())
        {
            return Err(INVALID);
        }
        let alignment = alignment.max(GRANULE);
        let start = reserve_addresses(bytes, alignment, wish as usize).ok_or(hipError_t::hipErrorOutOfMemory)?;
        registry::reserve(start, bytes);
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { store(out, start as *mut c_void) }
    })
}

/// Addresses without memory: at the wished place if it is free, else anywhere.
fn reserve_addresses(bytes: usize, alignment: usize, wish: usize) -> Option<usize> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    if wish != 0 && wish.is_multiple_of(alignment) {
        let exact = flags | MapFlags::FIXED_NOREPLACE;
        let at = wish as *mut c_void;
        // SAFETY: a new mapping that replaces none.
        if let Ok(start) = unsafe { mmap_anonymous(at, bytes, ProtFlags::empty(), exact) } {
            return Some(start as usize);
        }
    }
    let total = bytes.checked_add(alignment)?;
    // SAFETY: a new mapping at an address the kernel chooses touches no existing memory.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), flags) }.ok()?;
    let start = start as usize;
    let aligned = start.next_multiple_of(alignment);
    for (from, to) in [(start, aligned), (aligned + bytes, start + total)] {
        if from < to {
            // SAFETY: an unused part of the mapping just made.
            let _ = unsafe { munmap(from as *mut c_void, to - from) };
        }
    }
    Some(aligned)
}

pub(crate) unsafe extern "C" fn mem_address_free(ptr: *mut c_void, bytes: usize) -> hipError_t {
    entry("hipMemAddressFree", || {
        if ptr.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        // ROCm frees whatever range begins there; one that is not reserved, or still holds memory, is our error.
        registry::unreserve(ptr as usize, bytes)?;
        // SAFETY: a reservation of ours, which holds no memory.
        let _ = unsafe { munmap(ptr, bytes) };
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_map(
    ptr: *mut c_void,
    bytes: usize,
    offset: usize,
    handle: hipMemGenericAllocationHandle_t,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipMemMap", || {
        if ptr.is_null() || bytes == 0 || offset != 0 || flags != 0 {
            return Err(INVALID);
        }
        let memory = find(handle)?;
        let start = ptr as usize;
        if !start.is_multiple_of(GRANULE)
            || !bytes.is_multiple_of(GRANULE)
            || bytes > memory.bytes
            || !registry::is_reserved(start, bytes)
        {
            log::refused(
                "hipMemMap",
                format_args!("{bytes} bytes at {ptr:p} are not whole granules of a reserved range"),
            );
            return Err(INVALID);
        }
        let mapped = Arc::new(Mapped {
            memory: memory.clone(),
            access: Mutex::default(),
        });
        let allocation = Allocation::borrowed(start, bytes, Kind::Virtual, memory.device, 0);
        allocation.set_access(hipMemAccessFlags::hipMemAccessFlagsProtNone.0);
        registry::add_borrowed(allocation.keeping(mapped)).map_err(|_| INVALID)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let file = memory.backing.as_fd();
        // SAFETY: addresses that were reserved and that the registry just gave to this memory alone.
        let done = unsafe { mmap(ptr, bytes, ProtFlags::empty(), flags, file, 0) };
        done.map(|_| ()).map_err(|_| {
            registry::remove(start);
            hipError_t::hipErrorOutOfMemory
        })
    })
}

pub(crate) unsafe extern "C" fn mem_unmap(ptr: *mut c_void, bytes: usize) -> hipError_t {
    entry("hipMemUnmap", || {
        if ptr.is_null() || bytes == 0 {
            return Err(INVALID);
        }
        let start = ptr as usize;
        let allocation = registry::find(start)
            .filter(|allocation| {
                allocation.kind == Kind::Virtual && allocation.base == start && allocation.bytes == bytes
            })
            .ok_or(INVALID)?;
        stream::drain_device(allocation.device);
        if !registry::remove(start) {
            return Err(INVALID);
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: the memory was taken out of the registry by this call, and all work on the device is done.
        let emptied = unsafe { mmap_anonymous(ptr, bytes, ProtFlags::empty(), flags) };
        emptied.map(|_| ()).map_err(|_| hipError_t::hipErrorUnmapFailed)
    })
}

pub(crate) unsafe extern "C" fn mem_set_access(
    ptr: *mut c_void,
    bytes: usize,
    list: *const hipMemAccessDesc,
    count: usize,
) -> hipError_t {
    entry("hipMemSetAccess", || {
        if ptr.is_null() || bytes == 0 || list.is_null() || count == 0 {
            return Err(INVALID);
        }
        let mut wanted = Vec::with_capacity(count.min(64));
        for index in 0..count {
            // SAFETY: not null; the C caller promises `count` descriptions.
            let desc = unsafe { list.add(index).read_unaligned() };
            if !matches!(
                desc.flags,
                hipMemAccessFlags::hipMemAccessFlagsProtNone
                    | hipMemAccessFlags::hipMemAccessFlagsProtRead
                    | hipMemAccessFlags::hipMemAccessFlagsProtReadWrite
            ) {
                return Err(INVALID);
            }
            wanted.push((location(&desc.location)?.ordinal, desc.flags));
        }
        let start = ptr as usize;
        let places = registry::within(start, bytes, Kind::Virtual);
        let covered: usize = places.iter().map(|place| place.bytes).sum();
        // Whole mappings, and nothing between them.
        if covered != bytes || places.first().is_none_or(|first| first.base != start) {
            return Err(INVALID);
        }
        for place in &places {
            let mapped = place.kept::<Mapped>().ok_or(INVALID)?;
            let mut access = mapped.access.lock();
            access.extend(wanted.iter().copied());
            // One address space for all devices: the memory opens as far as the least restricted one may go.
            let most = access.values().map(|flags| flags.0).max().unwrap_or(0);
            let protection = match hipMemAccessFlags(most) {
                hipMemAccessFlags::hipMemAccessFlagsProtNone => MprotectFlags::empty(),
                hipMemAccessFlags::hipMemAccessFlagsProtRead => MprotectFlags::READ,
                _ => MprotectFlags::READ | MprotectFlags::WRITE,
            };
            // SAFETY: a mapping of ours, whole; work that loses access with it faults, as on a device.
            unsafe { mprotect(place.base as *mut c_void, place.bytes, protection) }
                .map_err(|_| hipError_t::hipErrorUnknown)?;
            place.set_access(most);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_get_access(
    out: *mut c_ulonglong,
    place: *const hipMemLocation,
    ptr: *mut c_void,
) -> hipError_t {
    entry("hipMemGetAccess", || {
        if out.is_null() || place.is_null() || ptr.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; the C caller promises a location it has filled.
        let device = location(&unsafe { place.read_unaligned() })?;
        let allocation = registry::find(ptr as usize).ok_or(INVALID)?;
        let mapped = allocation.kept::<Mapped>().ok_or(INVALID)?;
        let access = mapped.access.lock().get(&device.ordinal).copied();
        let access = access.unwrap_or(hipMemAccessFlags::hipMemAccessFlagsProtNone);
        // SAFETY: not null; room for the flags by the C caller's promise.
        unsafe { store(out, c_ulonglong::from(access.0)) }
    })
}
