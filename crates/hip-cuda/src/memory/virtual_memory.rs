//! Addresses and physical memory apart, and physical memory as a file descriptor.
//!
//! A descriptor that is exported here is what OpenCL imports as an opaque descriptor: the one way in which the two APIs
//! share memory on this platform.

use std::ffi::{c_int, c_void};

use hip_sys::{
    hipMemAccessDesc, hipMemAllocationGranularity_flags, hipMemAllocationHandleType, hipMemAllocationProp,
    hipMemGenericAllocationHandle_t, hipMemLocation,
};

use super::external::duplicate;
use super::{address, pointer};
use crate::cuda::driver::{AllocationProp, Physical};
use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null, store};

/// HIP's handle is a pointer that is never dereferenced, CUDA's a number.
fn physical(handle: hipMemGenericAllocationHandle_t) -> Physical {
    handle.addr() as Physical
}

fn handle(physical: Physical) -> hipMemGenericAllocationHandle_t {
    std::ptr::without_provenance_mut(physical as usize)
}

/// The caller's properties for CUDA, which reads, and requires to be zero, four bytes that are padding in HIP.
///
/// # Safety
/// `props` is not null and filled.
unsafe fn cleared(props: *const hipMemAllocationProp) -> AllocationProp {
    const HIPS: usize = std::mem::offset_of!(hipMemAllocationProp, allocFlags)
        + size_of::<hip_sys::hipMemAllocationProp__bindgen_ty_2>();
    let mut own = AllocationProp::default();
    // SAFETY: as many bytes of the caller's filled structure, within one of the same size.
    unsafe { std::ptr::copy_nonoverlapping(props.cast::<u8>(), (&raw mut own).cast(), HIPS) };
    own
}

/// Memory of no bytes is refused before it reaches the driver.
fn some(bytes: usize) -> Result {
    if bytes == 0 { Err(INVALID) } else { Ok(()) }
}

calls! {
    pub(crate) fn fill;

    fn hipMemGetAllocationGranularity(
        out: *mut usize, props: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags,
    ) {
        not_null!(out, props);
        let props = cleared(props);
        here()?.cuMemGetAllocationGranularity(out, &props, option.0)
    }
    fn hipMemCreate(out: *mut hipMemGenericAllocationHandle_t, bytes: usize, props: *const hipMemAllocationProp, flags: u64) {
        not_null!(out, props);
        some(bytes)?;
        let props = cleared(props);
        let mut made = 0;
        here()?.cuMemCreate(&mut made, bytes, &props, flags)?;
        store(out, handle(made))
    }
    fn hipMemRelease(memory: hipMemGenericAllocationHandle_t) {
        not_null!(memory);
        here()?.cuMemRelease(physical(memory))
    }
    fn hipMemRetainAllocationHandle(out: *mut hipMemGenericAllocationHandle_t, at: *mut c_void) {
        not_null!(out, at);
        let mut found = 0;
        here()?.cuMemRetainAllocationHandle(&mut found, at)?;
        store(out, handle(found))
    }
    fn hipMemGetAllocationPropertiesFromHandle(out: *mut hipMemAllocationProp, memory: hipMemGenericAllocationHandle_t) {
        not_null!(out, memory);
        here()?.cuMemGetAllocationPropertiesFromHandle(out, physical(memory))
    }
    fn hipMemAddressReserve(out: *mut *mut c_void, bytes: usize, alignment: usize, wish: *mut c_void, flags: u64) {
        not_null!(out);
        some(bytes)?;
        let mut found = 0;
        here()?.cuMemAddressReserve(&mut found, bytes, alignment, address(wish), flags)?;
        store(out, pointer(found))
    }
    fn hipMemAddressFree(at: *mut c_void, bytes: usize) {
        not_null!(at);
        some(bytes)?;
        here()?.cuMemAddressFree(address(at), bytes)
    }
    fn hipMemMap(at: *mut c_void, bytes: usize, offset: usize, memory: hipMemGenericAllocationHandle_t, flags: u64) {
        not_null!(at, memory);
        some(bytes)?;
        here()?.cuMemMap(address(at), bytes, offset, physical(memory), flags)
    }
    /// CUDA leaves it to the caller to ensure that no work uses the range; HIP waits for it (hipamd/src/hip_vm.cpp).
    fn hipMemUnmap(at: *mut c_void, bytes: usize) {
        not_null!(at);
        some(bytes)?;
        let driver = here()?;
        driver.cuCtxSynchronize()?;
        driver.cuMemUnmap(address(at), bytes)
    }
    fn hipMemSetAccess(at: *mut c_void, bytes: usize, list: *const hipMemAccessDesc, count: usize) {
        not_null!(at, list);
        some(bytes)?;
        here()?.cuMemSetAccess(address(at), bytes, list, count)
    }
    fn hipMemGetAccess(flags: *mut u64, place: *const hipMemLocation, at: *mut c_void) {
        not_null!(flags, place, at);
        here()?.cuMemGetAccess(flags, place, address(at))
    }
    fn hipMemExportToShareableHandle(
        out: *mut c_void, memory: hipMemGenericAllocationHandle_t, kind: hipMemAllocationHandleType, flags: u64,
    ) {
        not_null!(out, memory);
        here()?.cuMemExportToShareableHandle(out, physical(memory), kind.0, flags)
    }
    /// HIP 6 takes a pointer to the descriptor where CUDA takes the descriptor (hipamd/src/hip_vm.cpp).
    fn hipMemImportFromShareableHandle(
        out: *mut hipMemGenericAllocationHandle_t, shareable: *mut c_void, kind: hipMemAllocationHandleType,
    ) {
        not_null!(out, shareable);
        if kind != hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor {
            return Err(INVALID);
        }
        // The driver may take the descriptor; the caller's own stays the caller's.
        let own = duplicate(shareable.cast::<c_int>().read_unaligned())?;
        let number = usize::try_from(own.number()).map_err(|_| INVALID)?;
        let mut found = 0;
        if let Err(code) = here()?.cuMemImportFromShareableHandle(&mut found, std::ptr::without_provenance_mut(number), kind.0) {
            own.refused();
            return Err(code);
        }
        // Unlike an external memory's, an exported handle's descriptor stays open after the import, and `own` closes
        // it.
        drop(own);
        store(out, handle(found))
    }
}
