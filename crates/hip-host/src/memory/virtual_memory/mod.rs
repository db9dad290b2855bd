//! Addresses and memory apart: ranges that are reserved, memory that is made, and one put into the other.
//!
//! Memory is a file of its own, so it can be mapped at several places and handed to another process as a descriptor.
//! Rules and codes: hipamd/src/hip_vm.cpp.

mod places;
mod share;

use std::ffi::{c_ulonglong, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hip_sys::{
    hipError_t, hipMemAllocationGranularity_flags, hipMemAllocationHandleType, hipMemAllocationProp,
    hipMemAllocationType, hipMemGenericAllocationHandle_t, hipMemLocation, hipMemLocationType,
};
use parking_lot::Mutex;
pub(crate) use places::*;
pub(crate) use share::*;

use super::backing::Backing;
use super::{registry, reserve};
use crate::device::{self, Device};
use crate::error::{Result, entry, store};
use crate::handles::Handles;

/// What sizes and addresses are multiples of: ROCr's granule for device memory.
const GRANULE: usize = 4096;

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
        self.device.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Physical {
    /// Makes the handle; the device's memory was taken.
    fn publish(backing: Backing, bytes: usize, device: &'static Device, props: hipMemAllocationProp) -> usize {
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
unsafe fn read_props(props: *const hipMemAllocationProp) -> Result<(hipMemAllocationProp, &'static Device)> {
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

/// As what the memory may be exported.
fn handle_kind(props: &hipMemAllocationProp) -> hipMemAllocationHandleType {
    // SAFETY: both names in the union are the same number; HIP 7 only renamed it.
    unsafe { props.__bindgen_anon_1.requestedHandleType }
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
        match handle_kind(&props) {
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
        let memory = &allocation.kept::<places::Mapped>().ok_or(INVALID)?.memory;
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
