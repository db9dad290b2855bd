//! Memory handed to other processes, and taken from them.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::os::fd::{AsFd, IntoRawFd};

use hip_sys::{
    hipError_t, hipMemAllocationHandleType, hipMemAllocationProp, hipMemAllocationType,
    hipMemGenericAllocationHandle_t, hipMemLocation, hipMemLocationType,
};

use super::{INVALID, Physical, find, handle_kind};
use crate::device;
use crate::error::{entry, store};
use crate::memory::backing::Backing;
use crate::memory::external::duplicate;
use crate::memory::reserve;

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
            || handle_kind(&memory.props.0) != kind
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
            __bindgen_anon_1: hip_sys::hipMemAllocationProp__bindgen_ty_1 {
                requestedHandleType: kind,
            },
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
