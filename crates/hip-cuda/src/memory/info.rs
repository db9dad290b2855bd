//! What HIP reports about a pointer.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{CUmemorytype, CUpointer_attribute as Cu};
use hip_sys::{hipDeviceptr_t, hipError_t, hipMemRangeHandleType, hipMemoryType, hipPointerAttribute_t};

use super::{address, pointer};
use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null, store};

/// One attribute of an address, `Err` where the driver does not know the address.
///
/// `T` must be the attribute's type in the driver's documentation.
fn attribute<T: Default>(of: *const c_void, which: Cu) -> Result<T> {
    let mut value = T::default();
    // SAFETY: writes one value of the attribute's type; the address is only looked up.
    unsafe {
        here()?.cuPointerGetAttribute((&raw mut value).cast(), which as c_uint, address(of))?;
    }
    Ok(value)
}

/// Where the memory at an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Page-locked, so known to the driver.
    Host,
    Device,
    Managed,
    /// The driver does not know it: pageable host memory, or nothing.
    Unknown,
}

pub(crate) fn place(of: *const c_void) -> Result<Place> {
    let kind: u32 = match attribute(of, Cu::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        Ok(kind) => kind,
        Err(INVALID) => return Ok(Place::Unknown),
        Err(code) => return Err(code),
    };
    if attribute::<u32>(of, Cu::CU_POINTER_ATTRIBUTE_IS_MANAGED)? != 0 {
        return Ok(Place::Managed);
    }
    Ok(if kind == CUmemorytype::CU_MEMORYTYPE_HOST as u32 {
        Place::Host
    } else {
        Place::Device
    })
}

/// Base and size of the allocation that an address lies in.
fn range(of: *const c_void) -> Result<(*mut c_void, usize)> {
    let unknown = |_| hipError_t::hipErrorNotFound;
    let base: u64 = attribute(of, Cu::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR).map_err(unknown)?;
    let bytes = attribute(of, Cu::CU_POINTER_ATTRIBUTE_RANGE_SIZE).map_err(unknown)?;
    Ok((pointer(base), bytes))
}

calls! {
    pub(crate) fn fill;

    fn hipPointerGetAttributes(out: *mut hipPointerAttribute_t, at: *const c_void) {
        not_null!(out, at);
        let place = place(at)?;
        let mut told = hipPointerAttribute_t::default();
        if place == Place::Unknown {
            // HIP 6 knows no error for a pointer it does not know (hipamd/src/hip_memory.cpp).
            told.type_ = hipMemoryType::hipMemoryTypeUnregistered;
            told.device = hip_sys::hipInvalidDeviceId;
            return store(out, told);
        }
        told.type_ = match place {
            Place::Host => hipMemoryType::hipMemoryTypeHost,
            Place::Managed => hipMemoryType::hipMemoryTypeManaged,
            _ => hipMemoryType::hipMemoryTypeDevice,
        };
        told.isManaged = c_int::from(place == Place::Managed);
        told.device = attribute(at, Cu::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)?;
        // The driver has no device address for host memory that was not mapped, and no host address for the device's.
        told.devicePointer = attribute::<u64>(at, Cu::CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
            .map_or(std::ptr::null_mut(), pointer);
        if place != Place::Device {
            told.hostPointer = attribute::<u64>(at, Cu::CU_POINTER_ATTRIBUTE_HOST_POINTER)
                .map_or(std::ptr::null_mut(), pointer);
        }
        store(out, told)
    }
    fn hipMemGetAddressRange(base: *mut hipDeviceptr_t, bytes: *mut usize, at: hipDeviceptr_t) {
        not_null!(base, bytes);
        let (start, length) = range(at)?;
        store(base, start)?;
        store(bytes, length)
    }
    fn hipMemPtrGetInfo(at: *mut c_void, bytes: *mut usize) {
        not_null!(bytes);
        if at.is_null() {
            return store(bytes, 0);
        }
        store(bytes, range(at).map_err(|_| INVALID)?.1)
    }
    fn hipMemGetHandleForAddressRange(
        out: *mut c_void,
        at: hipDeviceptr_t,
        bytes: usize,
        kind: hipMemRangeHandleType,
        flags: u64,
    ) {
        not_null!(out, at);
        here()?.cuMemGetHandleForAddressRange(out, address(at), bytes, kind.0, flags)
    }
}
