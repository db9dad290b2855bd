//! Device memory shared with other processes.
//!
//! A handle says which file of which process the memory lies in; opening it goes through the system's process folder,
//! with the system's permissions, and compares the file's identity, so that a handle that outlived its memory opens
//! nothing.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use hip_sys::{hipError_t, hipIpcMemHandle_t, hipIpcMemLazyEnablePeerAccess};
use rustix::fs::{Mode, OFlags, fstat, open};

use super::mapping::Mapping;
use super::registry::{self, Allocation, Kind};
use crate::device;
use crate::error::{Result, entry, store};
use crate::log;
use crate::stream;

/// A file of another process.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RemoteFile {
    process: u32,
    descriptor: c_int,
    inode: u64,
}

impl RemoteFile {
    /// How other processes find `file`, which this process keeps open.
    pub(crate) fn here(file: &impl AsFd) -> Result<Self> {
        let status = fstat(file).map_err(|_| hipError_t::hipErrorOutOfMemory)?;
        Ok(Self {
            process: std::process::id(),
            descriptor: file.as_fd().as_raw_fd(),
            inode: status.st_ino,
        })
    }

    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Opens the file, if its process still has it.
    pub(crate) fn open(&self, call: &str) -> Option<OwnedFd> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = match open(&*path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => file,
            Err(error) => {
                log::refused(call, format_args!("{path}: {error}"));
                return None;
            }
        };
        let same = fstat(&file).is_ok_and(|status| status.st_ino == self.inode);
        if !same {
            log::refused(call, format_args!("{path} is no longer the shared memory"));
        }
        same.then_some(file)
    }
}

/// What a memory handle holds.
#[derive(Clone, Copy)]
#[repr(C)]
struct Shared {
    magic: u64,
    file: RemoteFile,
    /// Of the allocation in the file, in bytes.
    offset: u64,
    bytes: u64,
    /// Of the address in the allocation, in bytes.
    inside: u64,
}

const MAGIC: u64 = u64::from_le_bytes(*b"hcl-mem1");
const _: () = assert!(size_of::<Shared>() <= size_of::<hipIpcMemHandle_t>());

pub(crate) unsafe extern "C" fn ipc_get_mem_handle(
    out: *mut hipIpcMemHandle_t,
    ptr: *mut c_void,
) -> hipError_t {
    entry("hipIpcGetMemHandle", || {
        if out.is_null() || ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // Only HIP's own memory; OpenCL's is not looked for (rocclr/device/device.cpp, `IpcCreate`).
        let allocation = registry::find(ptr as usize)
            .filter(|allocation| allocation.kind == Kind::Device && allocation.is_owned())
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        let backing = allocation.backing()?;
        let shared = Shared {
            magic: MAGIC,
            file: RemoteFile::here(&*backing)?,
            offset: backing.offset(),
            bytes: allocation.bytes as u64,
            inside: (ptr as usize - allocation.base) as u64,
        };
        let mut handle = hipIpcMemHandle_t::default();
        // SAFETY: the handle has room for the value, asserted above; the caller's handle is not null and has room.
        unsafe {
            (&raw mut handle).cast::<Shared>().write_unaligned(shared);
            store(out, handle)
        }
    })
}

pub(crate) unsafe extern "C" fn ipc_open_mem_handle(
    out: *mut *mut c_void,
    handle: hipIpcMemHandle_t,
    flags: c_uint,
) -> hipError_t {
    const CALL: &str = "hipIpcOpenMemHandle";
    entry(CALL, || {
        if out.is_null() || flags != hipIpcMemLazyEnablePeerAccess {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // SAFETY: the handle has room for the value, and any bytes are numbers.
        let shared = unsafe { (&raw const handle).cast::<Shared>().read_unaligned() };
        if shared.magic != MAGIC || shared.inside >= shared.bytes {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // The process that shares the memory cannot open it (hipamd/src/hip_memory.cpp, `hipIpcOpenMemHandle`).
        if shared.file.is_here() {
            return Err(hipError_t::hipErrorInvalidContext);
        }
        let gone = hipError_t::hipErrorInvalidDevicePointer;
        let file = shared.file.open(CALL).ok_or(gone)?;
        let bytes = usize::try_from(shared.bytes).map_err(|_| gone)?;
        let size = fstat(&file).map_err(|_| gone)?.st_size;
        if shared
            .offset
            .checked_add(shared.bytes)
            .is_none_or(|end| i128::from(end) > i128::from(size))
        {
            return Err(gone);
        }
        let mapping = Mapping::of_file(file.as_fd(), shared.offset, bytes)
            .ok_or(hipError_t::hipErrorOutOfMemory)?;
        let address = mapping.base() + shared.inside as usize;
        let device = device::current()?;
        let allocation = Allocation::owned(mapping, bytes, Kind::Opened, device, 0, 0);
        registry::add(Arc::new(allocation));
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { store(out, address as *mut c_void) }
    })
}

pub(crate) unsafe extern "C" fn ipc_close_mem_handle(ptr: *mut c_void) -> hipError_t {
    entry("hipIpcCloseMemHandle", || {
        let opened = registry::find(ptr as usize)
            .filter(|allocation| allocation.kind == Kind::Opened)
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        if !registry::remove(opened.base) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        device::all().iter().for_each(stream::drain_device);
        Ok(())
    })
}
