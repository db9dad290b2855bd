//! Device memory shared with other processes.
//!
//! A handle says which file of which process the memory lies in; opening it goes through the system's process folder,
//! with the system's permissions. A handle's bytes are untrusted: before the file is opened for reading or writing, it
//! must be known to belong to this model and this user and to have the identity that the handle names. So a stale or
//! forged handle opens nothing.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use hip_sys::{hipError_t, hipIpcMemHandle_t, hipIpcMemLazyEnablePeerAccess};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, readlink};

use super::backing::{MEMORY, is_sealed};
use super::mapping::Mapping;
use super::registry::{self, Allocation, Kind};
use crate::error::{Result, entry, store};
use crate::{device, log, stream};

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

    /// Opens the file if its process still has it and its name and size match.
    pub(crate) fn open(&self, call: &str, name: &str, bytes: u64) -> Option<OwnedFd> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        self.examine(&path, name, bytes)
            .inspect_err(|reason| log::refused(call, format_args!("{path}: {reason}")))
            .ok()
    }

    fn examine(&self, path: &str, name: &str, bytes: u64) -> std::result::Result<OwnedFd, String> {
        let failed = |errno: rustix::io::Errno| errno.to_string();
        if self.process == 0 || self.descriptor < 0 {
            return Err("no process has such a descriptor".into());
        }
        // Opened only to inspect it: a full open of a pipe or a device may block or have side effects.
        let seen = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let status = fstat(&seen).map_err(failed)?;
        if !FileType::from_raw_mode(status.st_mode).is_file() || status.st_ino != self.inode {
            return Err("it is not, or no longer, the shared memory".into());
        }
        if status.st_uid != rustix::process::geteuid().as_raw() {
            return Err("it belongs to another user".into());
        }
        let again = format!("/proc/self/fd/{}", seen.as_raw_fd());
        let shown = readlink(&*again, Vec::new()).map_err(failed)?;
        if shown.to_bytes() != format!("/memfd:{name} (deleted)").as_bytes() {
            return Err(format!("it is not a file named {name:?}"));
        }
        if u64::try_from(status.st_size).is_ok_and(|size| size < bytes) {
            return Err(format!("it has {} bytes, not {bytes}", status.st_size));
        }
        // The same file, even if its process reuses the number meanwhile.
        let file = open(&*again, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        if !is_sealed(&file) {
            return Err("its size may change".into());
        }
        Ok(file)
    }
}

/// What a memory handle holds.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Shared {
    magic: u64,
    file: RemoteFile,
    /// Of the allocation in the file, in bytes.
    offset: u64,
    bytes: u64,
    /// Of the address in the allocation, in bytes.
    inside: u64,
}

impl Shared {
    /// What other processes must know about the memory at an address.
    pub(super) fn of(address: usize) -> Result<Self> {
        // Only HIP's own memory; OpenCL's is not looked for (rocclr/device/device.cpp, `IpcCreate`).
        let allocation = registry::find(address)
            .filter(|allocation| allocation.kind == Kind::Device && allocation.is_owned())
            .ok_or(hipError_t::hipErrorInvalidValue)?;
        let backing = allocation.backing().ok_or(hipError_t::hipErrorInvalidValue)?;
        Ok(Self {
            magic: MAGIC,
            file: RemoteFile::here(backing)?,
            offset: backing.offset(),
            bytes: allocation.bytes as u64,
            inside: (address - allocation.base) as u64,
        })
    }

    /// Whether the bytes, which anyone may have written, can be what [`of`](Self::of) made.
    pub(super) fn is_plausible(&self) -> bool {
        self.magic == MAGIC && self.inside < self.bytes
    }

    /// Maps the memory as of `kind`; its address.
    pub(super) fn open(&self, call: &str, kind: Kind) -> Result<usize> {
        let gone = hipError_t::hipErrorInvalidDevicePointer;
        let bytes = usize::try_from(self.bytes).map_err(|_| gone)?;
        let end = self.offset.checked_add(self.bytes).ok_or(gone)?;
        let file = self.file.open(call, MEMORY, end).ok_or(gone)?;
        let mapping = Mapping::of_file(file.as_fd(), self.offset, bytes).ok_or(hipError_t::hipErrorOutOfMemory)?;
        let address = mapping.base() + self.inside as usize;
        let device = device::current()?;
        let allocation = Allocation::owned(mapping, bytes, kind, device, 0, 0);
        registry::add(Arc::new(allocation));
        Ok(address)
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"hcl-mem1");
const _: () = assert!(size_of::<Shared>() <= size_of::<hipIpcMemHandle_t>());

pub(crate) unsafe extern "C" fn ipc_get_mem_handle(out: *mut hipIpcMemHandle_t, ptr: *mut c_void) -> hipError_t {
    entry("hipIpcGetMemHandle", || {
        if out.is_null() || ptr.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let shared = Shared::of(ptr as usize)?;
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
        if !shared.is_plausible() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // The process that shares the memory cannot open it (hipamd/src/hip_memory.cpp, `hipIpcOpenMemHandle`).
        if shared.file.is_here() {
            return Err(hipError_t::hipErrorInvalidContext);
        }
        let address = shared.open(CALL, Kind::Opened)?;
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
