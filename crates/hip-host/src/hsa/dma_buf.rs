//! Device memory as a descriptor that others can map, and access of other agents to it.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};

use hsa_sys::{hsa_agent_t, hsa_status_t};

use super::{Agent, entry, find, initialised};
use crate::log;
use crate::memory::registry::{self, Kind};

const ARGUMENT: hsa_status_t = hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT;
const ALLOCATION: hsa_status_t = hsa_status_t::HSA_STATUS_ERROR_INVALID_ALLOCATION;

/// The caller must use the offset: as on ROCm the descriptor is that of a larger block, and here it never begins with
/// the memory (runtime/hsa-runtime/core/runtime/runtime.cpp, `DmaBufExport`).
pub(super) unsafe extern "C" fn export(
    ptr: *const c_void,
    bytes: usize,
    out: *mut c_int,
    offset: *mut u64,
) -> hsa_status_t {
    const CALL: &str = "hsa_amd_portable_export_dmabuf";
    entry(CALL, || {
        initialised()?;
        if ptr.is_null() || bytes == 0 || out.is_null() || offset.is_null() {
            return Err(ARGUMENT);
        }
        let allocation = registry::device_range(ptr as usize, bytes).map_err(|_| ALLOCATION)?;
        let backing = match (allocation.kind, allocation.backing()) {
            // ROCm exports OpenCL's device memory too.
            (Kind::Device | Kind::ForeignVram, Some(backing)) => backing,
            // Memory of the host's agent is not exported.
            (Kind::Pinned | Kind::Managed | Kind::Registered | Kind::ForeignHost, _) => {
                return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT);
            }
            // OpenCL's memory that lies in no file has nothing to export. Imported memory is none of the runtime's own
            // on ROCm either, and crashes there.
            (kind, _) => {
                log::refused(
                    CALL,
                    format_args!("{ptr:p} is {kind:?} memory, which lies in no file of the model"),
                );
                return Err(ALLOCATION);
            }
        };
        let file = backing.as_fd().try_clone_to_owned();
        let file = file.map_err(|_| hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES)?;
        let inside = ptr as usize - allocation.base;
        // SAFETY: neither is null; room for a descriptor, the caller's from here on, and an offset.
        unsafe {
            offset.write_unaligned(backing.offset() + inside as u64);
            out.write_unaligned(file.into_raw_fd());
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn close(descriptor: c_int) -> hsa_status_t {
    entry("hsa_amd_portable_close_dmabuf", || {
        initialised()?;
        let failed = hsa_status_t::HSA_STATUS_ERROR_RESOURCE_FREE;
        if descriptor < 0 {
            return Err(failed);
        }
        // SAFETY: only asked whether it is open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        rustix::io::fcntl_getfd(borrowed).map_err(|_| failed)?;
        // SAFETY: open, and by the C caller's promise one that `export` gave and that nothing else uses.
        unsafe { rustix::io::close(descriptor) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn allow_access(
    count: u32,
    agents: *const hsa_agent_t,
    flags: *const u32,
    ptr: *const c_void,
) -> hsa_status_t {
    entry("hsa_amd_agents_allow_access", || {
        initialised()?;
        // The flags are reserved.
        if count == 0 || agents.is_null() || !flags.is_null() || ptr.is_null() {
            return Err(ARGUMENT);
        }
        let mut devices = 0;
        for index in 0..count as usize {
            // SAFETY: not null; the C caller promises `count` agents.
            match find(unsafe { agents.add(index).read_unaligned() })? {
                Agent::Host => {}
                Agent::Device(device) => devices |= 1u64 << device.ordinal,
            }
        }
        // By the address that was handed out (runtime/hsa-runtime/core/runtime/runtime.cpp, `AllowAccess`).
        let allocation = registry::find(ptr as usize)
            .filter(|allocation| allocation.base == ptr as usize)
            .ok_or(hsa_status_t::HSA_STATUS_ERROR)?;
        allocation.allow(devices);
        Ok(())
    })
}
