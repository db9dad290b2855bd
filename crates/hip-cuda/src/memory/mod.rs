//! Memory: what is allocated, copied, filled, mapped and shared.

pub(crate) mod allocation;
pub(crate) mod copy;
pub(crate) mod external;
pub(crate) mod host;
pub(crate) mod info;
pub(crate) mod ipc;
pub(crate) mod managed;
pub(crate) mod pool;
pub(crate) mod rectangle;
pub(crate) mod set;
pub(crate) mod virtual_memory;

use std::ffi::c_void;

use cudarc::driver::sys::CUdeviceptr;

/// A pointer as the driver takes it.
pub(crate) fn address<T>(pointer: *const T) -> CUdeviceptr {
    pointer.expose_provenance() as CUdeviceptr
}

/// The driver's address as a pointer.
pub(crate) fn pointer(address: CUdeviceptr) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
