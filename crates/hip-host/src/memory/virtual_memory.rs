//! Addresses and memory apart: ranges that are reserved, memory that is made, and one put into the other.
//!
//! Memory is a file of its own, so it can be mapped at several places and handed to another process as a descriptor.
//! Rules and codes: hipamd/src/hip_vm.cpp.

use std::collections::HashMap;
use std::ffi::{c_int, c_ulonglong, c_void};
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hip_sys::{
    hipError_t, hipMemAccessDesc, hipMemAccessFlags, hipMemAllocationGranularity_flags,
    hipMemAllocationHandleType, hipMemAllocationProp, hipMemAllocationType,
    hipMemGenericAllocationHandle_t, hipMemLocation, hipMemLocationType,
};
use parking_lot::Mutex;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use super::backing::Backing;
use super::external::duplicate;
use super::registry::{self, Allocation, Kind};
use super::reserve;
use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::handles::Handles;
use crate::log;
use crate::stream;

/// What sizes and addresses are multiples of: ROCr's granule for device memory.
const GRANULE: usize = 2 << 20;

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

static MEMORIES: Handles<Physical> = Handles::new();

/// Memory without an address.
struct Physical {
    backing: Backing,
    bytes: usize,
    device: &'static Device,
    props: Props,
    /// The handle's value, and how often it has still to be released.
    owners: Mutex<(usize, usize)>,
}

struct Props(hipMemAllocationProp);
// SAFETY: the one pointer among the properties is for Windows and never followed.
unsafe impl Send for Props {}
// SAFETY: as above.
unsafe impl Sync for Props {}

impl Drop for Physical {
    fn drop(&mut self) {
        self.device
            .used_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Physical {
    /// Makes the handle; the device's memory was taken.
    fn publish(
        backing: Backing,
        bytes: usize,
        device: &'static Device,
        props: hipMemAllocationProp,
    ) -> usize {
        let memory = Arc::new(Self {
            backing,
            bytes,
            device,
            props: Props(props),
            owners: Mutex::new((0, 1)),
        });
        let token = MEMORIES.insert(memory.clone());
        memory.owners.lock().0 = token;
        token
    }
}

/// A place where memory was put.
struct Mapped {
    memory: Arc<Physical>,
    /// By device, where it was set.
    access: Mutex<HashMap<usize, hipMemAccessFlags>>,
}

fn find(handle: hipMemGenericAllocationHandle_t) -> Result<Arc<Physical>> {
    MEMORIES.get(handle as usize).ok_or(INVALID)
}

fn location(location: &hipMemLocation) -> Result<&'static Device> {
    if location.type_ != hipMemLocationType::hipMemLocationTypeDevice {
        return Err(INVALID);
    }
    device::by_ordinal(location.id).map_err(|_| INVALID)
}

/// # Safety
/// `props` is null or readable.
unsafe fn read_props(
    props: *const hipMemAllocationProp,
) -> Result<(hipMemAllocationProp, &'static Device)> {
    if props.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null; readable by this function's contract.
    let props = unsafe { props.read_unaligned() };
    if props.type_ != hipMemAllocationType::hipMemAllocationTypePinned {
        return Err(INVALID);
    }
    Ok((props, location(&props.location)?))
}

pub(crate) unsafe extern "C" fn mem_get_allocation_granularity(
    out: *mut usize,
    props: *const hipMemAllocationProp,
    option: hipMemAllocationGranularity_flags,
) -> hipError_t {
    entry("hipMemGetAllocationGranularity", || {
        // SAFETY: null is refused; otherwise the C caller promises properties it has filled.
        unsafe { read_props(props) }?;
        if !matches!(
            option,
            hipMemAllocationGranularity_flags::hipMemAllocationGranularityMinimum
                | hipMemAllocationGranularity_flags::hipMemAllocationGranularityRecommended
        ) {
            return Err(INVALID);
        }
        // SAFETY: null is refused by `store`; otherwise room for a size by the C caller's promise.
        unsafe { store(out, GRANULE) }
    })
}

pub(crate) unsafe extern "C" fn mem_create(
    out: *mut hipMemGenericAllocationHandle_t,
    bytes: usize,
    props: *const hipMemAllocationProp,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipMemCreate", || {
        if out.is_null() || bytes == 0 || flags != 0 {
            return Err(INVALID);
        }
        // SAFETY: null is refused; otherwise the C caller promises properties it has filled.
        let (props, device) = unsafe { read_props(props) }?;
        match props.requestedHandleType {
            hipMemAllocationHandleType::hipMemHandleTypeNone
            | hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor => {}
            _ => return Err(hipError_t::hipErrorNotSupported),
        }
        if bytes > device.total_bytes {
            return Err(hipError_t::hipErrorOutOfMemory);
        }
        if !bytes.is_multiple_of(GRANULE) {
            return Err(INVALID);
        }
        reserve(device, bytes)?;
        let backing = Backing::new(bytes).inspect_err(|_| {
            device.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        })?;
        let token = Physical::publish(backing, bytes, device, props);
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, token as hipMemGenericAllocationHandle_t) }
    })
}

pub(crate) unsafe extern "C" fn mem_release(handle: hipMemGenericAllocationHandle_t) -> hipError_t {
    entry("hipMemRelease", || {
        let memory = find(handle)?;
        let mut owners = memory.owners.lock();
        owners.1 -= 1;
        // Where it is mapped, the memory lives on.
        if owners.1 == 0 {
            MEMORIES.remove(handle as usize);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_retain_allocation_handle(
    out: *mut hipMemGenericAllocationHandle_t,
    ptr: *mut c_void,
) -> hipError_t {
    entry("hipMemRetainAllocationHandle", || {
        let allocation = registry::find(ptr as usize).ok_or(INVALID)?;
        let memory = &allocation.kept::<Mapped>().ok_or(INVALID)?.memory;
        if out.is_null() {
            return Err(INVALID);
        }
        let mut owners = memory.owners.lock();
        if owners.1 == 0 {
            owners.0 = MEMORIES.insert(memory.clone());
        }
        owners.1 += 1;
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, owners.0 as hipMemGenericAllocationHandle_t) }
    })
}

pub(crate) unsafe extern "C" fn mem_get_allocation_properties_from_handle(
    out: *mut hipMemAllocationProp,
    handle: hipMemGenericAllocationHandle_t,
) -> hipError_t {
    entry("hipMemGetAllocationPropertiesFromHandle", || {
        let memory = find(handle)?;
        // SAFETY: null is refused by `store`; otherwise room for the properties by the C caller's promise.
        unsafe { store(out, memory.props.0) }
    })
}

pub(crate) unsafe extern "C" fn mem_address_reserve(
    out: *mut *mut c_void,
    bytes: usize,
    alignment: usize,
    wish: *mut c_void,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipMemAddressReserve", || {
        if out.is_null() || flags != 0 {
            return Err(INVALID);
        }
        if bytes == 0
            || !bytes.is_multiple_of(GRANULE)
            || (alignment != 0 && !alignment.is_power_of_two())
        {
            return Err(hipError_t::hipErrorOutOfMemory);
        }
        let alignment = alignment.max(GRANULE);
        let start = reserve_addresses(bytes, alignment, wish as usize)
            .ok_or(hipError_t::hipErrorOutOfMemory)?;
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
    let start =
        unsafe { mmap_anonymous(std::ptr::null_mut(), total, ProtFlags::empty(), flags) }.ok()?;
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
                allocation.kind == Kind::Virtual
                    && allocation.base == start
                    && allocation.bytes == bytes
            })
            .ok_or(INVALID)?;
        stream::drain_device(allocation.device);
        if !registry::remove(start) {
            return Err(INVALID);
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: the memory was taken out of the registry by this call, and all work on the device is done.
        let emptied = unsafe { mmap_anonymous(ptr, bytes, ProtFlags::empty(), flags) };
        emptied
            .map(|_| ())
            .map_err(|_| hipError_t::hipErrorUnmapFailed)
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

pub(crate) unsafe extern "C" fn mem_export_to_shareable_handle(
    out: *mut c_void,
    handle: hipMemGenericAllocationHandle_t,
    kind: hipMemAllocationHandleType,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipMemExportToShareableHandle", || {
        let memory = find(handle)?;
        if out.is_null() || flags != 0 {
            return Err(INVALID);
        }
        // Only as what it was made to be.
        if kind != hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor
            || memory.props.0.requestedHandleType != kind
        {
            return Err(INVALID);
        }
        let file = memory.backing.as_fd().try_clone_to_owned();
        let file = file.map_err(|_| hipError_t::hipErrorOutOfMemory)?;
        // SAFETY: not null; room for a descriptor, which is the caller's from here on.
        unsafe { store(out.cast::<c_int>(), file.into_raw_fd()) }
    })
}

pub(crate) unsafe extern "C" fn mem_import_from_shareable_handle(
    out: *mut hipMemGenericAllocationHandle_t,
    os_handle: *mut c_void,
    kind: hipMemAllocationHandleType,
) -> hipError_t {
    const CALL: &str = "hipMemImportFromShareableHandle";
    entry(CALL, || {
        if out.is_null()
            || os_handle.is_null()
            || kind != hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor
        {
            return Err(INVALID);
        }
        // HIP 6 takes a pointer to the descriptor, unlike CUDA (hipamd/src/hip_vm.cpp).
        // SAFETY: not null; points to a descriptor by the C caller's promise.
        let fd = unsafe { os_handle.cast::<c_int>().read_unaligned() };
        let (file, bytes) = duplicate(CALL, fd).map_err(|_| INVALID)?;
        let bytes = usize::try_from(bytes).map_err(|_| INVALID)?;
        let device = device::current()?;
        let props = hipMemAllocationProp {
            type_: hipMemAllocationType::hipMemAllocationTypePinned,
            requestedHandleType: kind,
            location: hipMemLocation {
                type_: hipMemLocationType::hipMemLocationTypeDevice,
                id: device.ordinal as c_int,
            },
            ..hipMemAllocationProp::default()
        };
        // Charged where it was made, and here again: the model cannot see that both are the same memory.
        reserve(device, bytes)?;
        let token = Physical::publish(Backing::of(file), bytes, device, props);
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, token as hipMemGenericAllocationHandle_t) }
    })
}
